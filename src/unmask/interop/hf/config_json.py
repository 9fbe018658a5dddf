"""The settings of a network: `config.json` on their side, a `Trunk` with two sizes on ours.

What arrives: one of them. What leaves: the other.
What never happens here: a setting that is lost. What a dialect cannot say of a trunk, and what our trunk cannot say of
a dialect, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, TransformerConfig
from unmask.core.errors import InputError
from unmask.interop.hf.architecture import Architecture, HFTask
from unmask.interop.hf.lookup import architectures, model_map, parts_of
from unmask.interop.hf.model_map import ACTIVATION_NAMES, ModelMap, Parts
from unmask.interop.hf.task_config import NO_TASK, TaskConfig
from unmask.nets.model import EncoderWithHeads

_ACTIVATIONS_BY_NAME = {
    "gelu": Activation.GELU,
    "gelu_python": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_fast": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
    "relu": Activation.RELU,
}
_CONFIG_DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "pad_token_id": 0,
}
"""The values of settings that a file may leave out."""


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """What a network is built from, and the dialect that it was written in."""

    model_type: ModelType
    network: TransformerConfig
    vocab_size: int
    max_positions: int


def write_config(
    model: EncoderWithHeads, pad: int, architecture: Architecture, task: TaskConfig = NO_TASK
) -> dict[str, Any]:
    """The content of `config.json`; the task names the classes of a network that was tuned."""
    grammar = model_map(architecture.model_type)
    check_network(grammar, model.encoder.config, parts_of(architecture))
    _check_pad(grammar, model.encoder.config, pad)
    trunk = grammar.layer_names.expressible(model.encoder.config)
    return {
        "architectures": [architecture.name],
        "model_type": architecture.model_type.value,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": trunk.position_offset + model.max_positions,
        "hidden_size": trunk.width,
        **grammar.layer_names.to_config(trunk),
        "num_attention_heads": trunk.heads,
        "intermediate_size": trunk.ffn_width,
        **({"embedding_size": trunk.token_width} if grammar.projection.layer else {}),
        "type_vocab_size": trunk.num_segments,
        "hidden_act": ACTIVATION_NAMES[trunk.activation],
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": trunk.attention_dropout,
        "layer_norm_eps": trunk.norm_eps,
        "initializer_range": trunk.init_std,
        "pad_token_id": pad,
        **grammar.fixed_config,
        **_classes(model, architecture, task),
    }


def _classes(model: EncoderWithHeads, architecture: Architecture, task: TaskConfig) -> dict[str, Any]:
    """What the classes are called. One class alone is a number; without names they have those of `transformers`."""
    if architecture.task is HFTask.CLASSIFIER:
        assert model.row_head is not None, "a classifier has a head for rows"
        classes = model.row_head.classify.out_features
        return {**_names(classes, task), "problem_type": _problem(classes, task)}
    if architecture.task is HFTask.TOKEN_CLASSIFICATION:
        assert model.token_classifier is not None, "a tagger scores each token"
        return _names(model.token_classifier.out_features, task)
    return {}


def _names(classes: int, task: TaskConfig) -> dict[str, Any]:
    names = task.labels or tuple(f"LABEL_{number}" for number in range(classes))
    assert len(names) == classes, "every class has a name"
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _problem(classes: int, task: TaskConfig) -> str:
    if classes == 1:
        return "regression"
    return "multi_label_classification" if task.is_multi_label else "single_label_classification"


def read_config(config: Mapping[str, Any]) -> ModelSizes:
    """Dialect, trunk, vocabulary and positions from the content of a `config.json`."""
    grammar = model_map(_read_model_type(config))
    config = {**_CONFIG_DEFAULTS, **grammar.default_config, **config}
    _check_config(config, grammar)
    first = _read_int(config, "pad_token_id", 0) + 1 if grammar.positions_after_pad else 0
    counts = {name: _read_int({name: usual, **config}, name) for name, usual in grammar.layer_names.counts.items()}
    width = _read_int(config, "hidden_size")
    narrow = _read_int(config, "embedding_size") if grammar.projection.layer else width
    trunk = TransformerConfig(
        width=width,
        heads=_read_int(config, "num_attention_heads"),
        ffn_width=_read_int(config, "intermediate_size"),
        embedding_width=narrow if narrow != width else 0,
        num_segments=_read_int(config, "type_vocab_size"),
        activation=_ACTIVATIONS_BY_NAME[config["hidden_act"]],
        position_offset=first,
        pooler_activation=grammar.pooler_activation,
        dropout=_read_float(config, "hidden_dropout_prob"),
        attention_dropout=_read_float(config, "attention_probs_dropout_prob"),
        norm_eps=_read_float(config, "layer_norm_eps"),
        init_std=_read_float(config, "initializer_range"),
        **grammar.layer_names.from_config(counts),
    )
    positions = _read_int(config, "max_position_embeddings", first + 1) - first
    return ModelSizes(grammar.model_type, trunk, _read_int(config, "vocab_size"), positions)


def check_network(grammar: ModelMap, trunk: TransformerConfig, parts: Parts) -> None:
    """Refuse a trunk that a dialect's settings cannot describe under these heads."""
    found = grammar.inexpressible(trunk, parts)
    if found:
        raise InputError(
            f"This network cannot be written as {_with_article(grammar.name)}: it has {' and '.join(found)}, which {grammar.name} "
            "has not."
        )


def _check_pad(grammar: ModelMap, trunk: TransformerConfig, pad: int) -> None:
    """RoBERTa counts positions from the id of padding on."""
    if grammar.positions_after_pad and pad + 1 != trunk.position_offset:
        raise InputError(
            f"This network cannot be written as {_with_article(grammar.name)}: its positions begin with number "
            f"{trunk.position_offset}, so its tokenizer should pad with id {trunk.position_offset - 1}, but pads with id "
            f"{pad}. Prepare the corpus with the tokenizer of the member (byte-level BPE pads with 1)."
        )


def _read_model_type(config: Mapping[str, Any]) -> ModelType:
    """The model type that is named; refuses one that is unknown, and a class that is none of its own."""
    kind, known = config.get("model_type", ModelType.BERT.value), [dialect.value for dialect in ModelType]
    classes = [one.name for one in architectures(ModelType(kind))] if kind in known else []
    unknown = [name for name in config.get("architectures") or () if name not in classes]
    if kind not in known or unknown:
        can = f"model type {kind} with one of {', '.join(sorted(classes))}" if classes else f"one of {', '.join(known)}"
        raise InputError(
            f"config.json describes {', '.join(unknown) or 'a network'} (model type {kind}); what can be read is {can}."
        )
    return ModelType(kind)


def _check_config(config: Mapping[str, Any], grammar: ModelMap) -> None:
    """Refuse a network of a dialect that works in another way."""
    wrong = [name for name, value in grammar.fixed_config.items() if config.get(name, value) != value]
    if wrong:
        found = ", ".join(f"{name} = {config[name]!r}" for name in wrong)
        raise InputError(
            f"config.json asks for {_with_article(grammar.name)} of another kind ({found}), which cannot be read."
        )
    if config["hidden_act"] not in _ACTIVATIONS_BY_NAME:
        raise InputError(
            f"config.json names the activation {config['hidden_act']!r}; known are {', '.join(_ACTIVATIONS_BY_NAME)}."
        )


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AE" else f"a {name}"


def _read_int(config: Mapping[str, Any], name: str, least: int = 1) -> int:
    value = config.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"config.json should give {name} as a whole number above {least - 1}, but has {value!r}.")
    return value


def _read_float(config: Mapping[str, Any], name: str) -> float:
    value = config[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"config.json should give {name} as a number, but has {value!r}.")
    return float(value)
