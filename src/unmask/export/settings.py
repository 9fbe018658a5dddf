"""The settings of a network: `config.json` on their side, a `Trunk` with two sizes on ours.

What arrives: one of them. What leaves: the other.
What never happens here: a setting that is lost. What a dialect cannot say of a trunk, and what our trunk cannot say of
a dialect, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unmask.dialect import Dialect
from unmask.errors import InputError
from unmask.export.architecture import Architecture, Purpose
from unmask.export.dialects import architectures, grammar_of, parts_of
from unmask.export.grammar import SAYS, Grammar, Parts
from unmask.export.task import NO_TASK, Task
from unmask.nets.model import Model
from unmask.nets.trunk import Activation, Trunk

_MEANS = {
    "gelu": Activation.GELU,
    "gelu_python": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_fast": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
    "relu": Activation.RELU,
}
_USUAL = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "pad_token_id": 0,
}
"""The values of settings that a file may leave out."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a network is built from, and the dialect that it was written in."""

    dialect: Dialect
    trunk: Trunk
    vocabulary: int
    positions: int


def write_config(model: Model, pad: int, architecture: Architecture, task: Task = NO_TASK) -> dict[str, Any]:
    """The content of `config.json`; the task names the classes of a network that was tuned."""
    grammar = grammar_of(architecture.dialect)
    check_trunk(grammar, model.shape, parts_of(architecture))
    _check_pad(grammar, model.shape, pad)
    trunk = grammar.stack.written(model.shape)
    return {
        "architectures": [architecture.name],
        "model_type": architecture.dialect.value,
        "vocab_size": model.vocabulary,
        "max_position_embeddings": trunk.first_position + model.positions,
        "hidden_size": trunk.width,
        **grammar.stack.say(trunk),
        "num_attention_heads": trunk.heads,
        "intermediate_size": trunk.inner,
        **({"embedding_size": trunk.token_width} if grammar.projection.layer else {}),
        "type_vocab_size": trunk.segments,
        "hidden_act": SAYS[trunk.activation],
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": trunk.attention_dropout,
        "layer_norm_eps": trunk.epsilon,
        "initializer_range": trunk.spread,
        "pad_token_id": pad,
        **grammar.fixed,
        **_classes(model, architecture, task),
    }


def _classes(model: Model, architecture: Architecture, task: Task) -> dict[str, Any]:
    """What the classes are called. One class alone is a number; without names they have those of `transformers`."""
    if architecture.purpose is Purpose.CLASSIFIER:
        assert model.row is not None, "a classifier has a head for rows"
        classes = model.row.classify.out_features
        return {**_names(classes, task), "problem_type": _problem(classes, task)}
    if architecture.purpose is Purpose.TAGGER:
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
    """Dialect, trunk, vocabulary and positions from the content of a `config.json`."""
    grammar = grammar_of(_dialect(config))
    config = {**_USUAL, **grammar.usual, **config}
    _check_config(config, grammar)
    first = _whole(config, "pad_token_id", 0) + 1 if grammar.after_pad else 0
    counts = {name: _whole({name: usual, **config}, name) for name, usual in grammar.stack.counts.items()}
    width = _whole(config, "hidden_size")
    narrow = _whole(config, "embedding_size") if grammar.projection.layer else width
    trunk = Trunk(
        width=width,
        heads=_whole(config, "num_attention_heads"),
        inner=_whole(config, "intermediate_size"),
        embedding=narrow if narrow != width else 0,
        segments=_whole(config, "type_vocab_size"),
        activation=_MEANS[config["hidden_act"]],
        first_position=first,
        pooled=grammar.pooled,
        dropout=_real(config, "hidden_dropout_prob"),
        attention_dropout=_real(config, "attention_probs_dropout_prob"),
        epsilon=_real(config, "layer_norm_eps"),
        spread=_real(config, "initializer_range"),
        **grammar.stack.hear(counts),
    )
    positions = _whole(config, "max_position_embeddings", first + 1) - first
    return Sizes(grammar.dialect, trunk, _whole(config, "vocab_size"), positions)


def check_trunk(grammar: Grammar, trunk: Trunk, parts: Parts) -> None:
    """Refuse a trunk that a dialect's settings cannot describe under these heads."""
    found = grammar.beyond(trunk, parts)
    if found:
        raise InputError(
            f"This network cannot be written as {_a(grammar.name)}: it has {' and '.join(found)}, which {grammar.name} "
            "has not."
        )


def _check_pad(grammar: Grammar, trunk: Trunk, pad: int) -> None:
    """RoBERTa counts positions from the id of padding on."""
    if grammar.after_pad and pad + 1 != trunk.first_position:
        raise InputError(
            f"This network cannot be written as {_a(grammar.name)}: its positions begin with number "
            f"{trunk.first_position}, so its tokenizer should pad with id {trunk.first_position - 1}, but pads with id "
            f"{pad}. Prepare the corpus with the tokenizer of the member (byte-level BPE pads with 1)."
        )


def _dialect(config: Mapping[str, Any]) -> Dialect:
    """The model type that is named; refuses one that is unknown, and a class that is none of its own."""
    kind, known = config.get("model_type", Dialect.BERT.value), [dialect.value for dialect in Dialect]
    classes = [one.name for one in architectures(Dialect(kind))] if kind in known else []
    unknown = [name for name in config.get("architectures") or () if name not in classes]
    if kind not in known or unknown:
        can = f"model type {kind} with one of {', '.join(sorted(classes))}" if classes else f"one of {', '.join(known)}"
        raise InputError(
            f"config.json describes {', '.join(unknown) or 'a network'} (model type {kind}); what can be read is {can}."
        )
    return Dialect(kind)


def _check_config(config: Mapping[str, Any], grammar: Grammar) -> None:
    """Refuse a network of a dialect that works in another way."""
    wrong = [name for name, value in grammar.fixed.items() if config.get(name, value) != value]
    if wrong:
        found = ", ".join(f"{name} = {config[name]!r}" for name in wrong)
        raise InputError(f"config.json asks for {_a(grammar.name)} of another kind ({found}), which cannot be read.")
    if config["hidden_act"] not in _MEANS:
        raise InputError(f"config.json names the activation {config['hidden_act']!r}; known are {', '.join(_MEANS)}.")


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "AE" else f"a {name}"


def _whole(config: Mapping[str, Any], name: str, least: int = 1) -> int:
    value = config.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"config.json should give {name} as a whole number above {least - 1}, but has {value!r}.")
    return value


def _real(config: Mapping[str, Any], name: str) -> float:
    value = config[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"config.json should give {name} as a number, but has {value!r}.")
    return float(value)
