"""The settings of a BERT: `config.json` on their side, a `Trunk` with two sizes on ours.

What arrives: one of them. What leaves: the other.
What never happens here: a setting that is lost. What BERT cannot say of a trunk, and what our trunk cannot say of a
BERT, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unmask.errors import InputError
from unmask.export.bert import Architecture
from unmask.export.task import NO_TASK, Task
from unmask.nets.model import Model
from unmask.nets.trunk import Activation, Norm, Positions, Sharing, Trunk

_SAYS = {Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_new", Activation.RELU: "relu"}
_MEANS = {
    "gelu": Activation.GELU,
    "gelu_python": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_fast": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
    "relu": Activation.RELU,
}
_FIXED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
"""Settings that must have this value where they are given."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a network is built from."""

    trunk: Trunk
    vocabulary: int
    positions: int


def write_config(model: Model, pad: int, architecture: Architecture, task: Task = NO_TASK) -> dict[str, Any]:
    """The content of `config.json`; the task names the classes of a network that was tuned."""
    trunk = model.shape
    _check_trunk(trunk)
    return {
        "architectures": [architecture.value],
        "model_type": "bert",
        "vocab_size": model.vocabulary,
        "max_position_embeddings": model.positions,
        "hidden_size": trunk.width,
        "num_hidden_layers": trunk.depth,
        "num_attention_heads": trunk.heads,
        "intermediate_size": trunk.inner,
        "type_vocab_size": trunk.segments,
        "hidden_act": _SAYS[trunk.activation],
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": trunk.attention_dropout,
        "layer_norm_eps": trunk.epsilon,
        "initializer_range": trunk.spread,
        "pad_token_id": pad,
        **_FIXED,
        **_classes(model, architecture, task),
    }


def _classes(model: Model, architecture: Architecture, task: Task) -> dict[str, Any]:
    """What the classes are called. One class alone is a number; without names they have those of `transformers`."""
    if architecture is Architecture.CLASSIFIER:
        assert model.row is not None, "a classifier has a head for rows"
        classes = model.row.classify.out_features
        return {**_names(classes, task), "problem_type": _problem(classes, task)}
    if architecture is Architecture.TAGGER:
        assert model.each is not None, "a tagger scores each token"
        return _names(model.each.out_features, task)
    return {}


def _names(classes: int, task: Task) -> dict[str, Any]:
    names = task.labels or tuple(f"LABEL_{number}" for number in range(classes))
    assert len(names) == classes, "every class has a name"
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _problem(classes: int, task: Task) -> str:
    if classes == 1:
        return "regression"
    return "multi_label_classification" if task.several else "single_label_classification"


def read_config(config: Mapping[str, Any]) -> Sizes:
    """Trunk, vocabulary and positions from the content of a `config.json`."""
    _check_config(config)
    trunk = Trunk(
        depth=_whole(config, "num_hidden_layers"),
        width=_whole(config, "hidden_size"),
        heads=_whole(config, "num_attention_heads"),
        inner=_whole(config, "intermediate_size"),
        segments=_whole(config, "type_vocab_size"),
        activation=_MEANS[config.get("hidden_act", "gelu")],
        dropout=_real(config, "hidden_dropout_prob", 0.1),
        attention_dropout=_real(config, "attention_probs_dropout_prob", 0.1),
        epsilon=_real(config, "layer_norm_eps", 1e-12),
        spread=_real(config, "initializer_range", 0.02),
    )
    return Sizes(trunk, _whole(config, "vocab_size"), _whole(config, "max_position_embeddings"))


def _check_trunk(trunk: Trunk) -> None:
    """Refuse a trunk that BERT's settings cannot describe."""
    cannot = {
        "pre-norm blocks": trunk.norm is not Norm.POST,
        "positions that are not learned": trunk.positions is not Positions.LEARNED,
        "layers that share weights": trunk.sharing is not Sharing.NONE,
        "a factorised embedding": trunk.token_width != trunk.width,
        "task embeddings": trunk.tasks > 0,
        "no segment embedding": trunk.segments < 1,
        f"{trunk.activation.value} activation": trunk.activation not in _SAYS,
    }
    found = [what for what, is_so in cannot.items() if is_so]
    if found:
        raise InputError(f"This network cannot be written as a BERT: it has {' and '.join(found)}, which BERT has not.")


def _check_config(config: Mapping[str, Any]) -> None:
    """Refuse what is no BERT, or a BERT that works in another way."""
    kind = config.get("model_type", "bert")
    known = {architecture.value for architecture in Architecture}
    unknown = [name for name in config.get("architectures") or () if name not in known]
    if kind != "bert" or unknown:
        raise InputError(
            f"config.json describes {', '.join(unknown) or 'a network'} (model type {kind}); what can be read is model "
            f"type bert with one of {', '.join(sorted(known))}."
        )
    wrong = [name for name, value in _FIXED.items() if config.get(name, value) != value]
    if wrong:
        found = ", ".join(f"{name} = {config[name]!r}" for name in wrong)
        raise InputError(f"config.json asks for a BERT of another kind ({found}), which cannot be read.")
    if config.get("hidden_act", "gelu") not in _MEANS:
        raise InputError(f"config.json names the activation {config['hidden_act']!r}; known are {', '.join(_MEANS)}.")


def _whole(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"config.json should give {name} as a whole number above 0, but has {value!r}.")
    return value


def _real(config: Mapping[str, Any], name: str, usual: float) -> float:
    value = config.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"config.json should give {name} as a number, but has {value!r}.")
    return float(value)
