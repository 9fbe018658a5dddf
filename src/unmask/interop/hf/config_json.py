"""`config.json`: an encoder configuration as settings of `transformers`, and back. Nothing is dropped silently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, TransformerConfig
from unmask.core.errors import InputError
from unmask.interop.hf.lookup import architectures, model_map, parts_of
from unmask.interop.hf.model_map import ACTIVATION_NAMES, Architecture, HFTask, ModelMap, Parts
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
"""Defaults of settings that a file may omit."""


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """How the outputs of a fine-tuned model are read as answers; empty for a pre-trained network."""

    labels: tuple[str, ...] = ()
    """The names of the classes, by number."""
    is_multi_label: bool = False
    """Whether a row may have several labels, or none."""
    max_length: int = 0
    """The maximum row length of the fine-tuning; 0: as many tokens as there are positions."""
    max_answer_tokens: int = 0
    """The maximum length of an extracted answer."""
    threshold: float = math.inf
    """The margin of the no-answer score over the best span from which on there is no answer; infinite: never."""
    notes: tuple[str, ...] = ()
    """Further sentences for the model card."""


NO_TASK = TaskConfig()


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """What an encoder is built from, and its model type."""

    model_type: ModelType
    network: TransformerConfig
    vocab_size: int
    max_positions: int


def write_config(
    model: EncoderWithHeads, pad: int, architecture: Architecture, task: TaskConfig = NO_TASK
) -> dict[str, Any]:
    """The content of `config.json`; `task` names the classes of a fine-tuned model."""
    names = model_map(architecture.model_type)
    check_network(names, model.encoder.config, parts_of(architecture))
    _check_pad(names, model.encoder.config, pad)
    network = names.layer_names.expressible(model.encoder.config)
    return {
        "architectures": [architecture.name],
        "model_type": architecture.model_type.value,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": network.position_offset + model.max_positions,
        "hidden_size": network.width,
        **names.layer_names.to_config(network),
        "num_attention_heads": network.heads,
        "intermediate_size": network.ffn_width,
        **({"embedding_size": network.token_width} if names.projection.layer else {}),
        "type_vocab_size": network.num_segments,
        "hidden_act": ACTIVATION_NAMES[network.activation],
        "hidden_dropout_prob": network.dropout,
        "attention_probs_dropout_prob": network.attention_dropout,
        "layer_norm_eps": network.norm_eps,
        "initializer_range": network.init_std,
        "pad_token_id": pad,
        **names.fixed_config,
        **_classes(model, architecture, task),
    }


def _classes(model: EncoderWithHeads, architecture: Architecture, task: TaskConfig) -> dict[str, Any]:
    """The names of the classes. A single class is a regression; missing names are those of `transformers`."""
    if architecture.task is HFTask.CLASSIFIER:
        assert model.row_head is not None, "a classifier has a row head"
        classes = model.row_head.classify.out_features
        return {**_label_names(classes, task), "problem_type": _problem(classes, task)}
    if architecture.task is HFTask.TOKEN_CLASSIFICATION:
        assert model.token_classifier is not None, "a tagger scores each token"
        return _label_names(model.token_classifier.out_features, task)
    return {}


def _label_names(classes: int, task: TaskConfig) -> dict[str, Any]:
    labels = task.labels or tuple(f"LABEL_{number}" for number in range(classes))
    assert len(labels) == classes, "every class has a name"
    return {
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
    }


def _problem(classes: int, task: TaskConfig) -> str:
    if classes == 1:
        return "regression"
    return "multi_label_classification" if task.is_multi_label else "single_label_classification"


def read_config(config: Mapping[str, Any]) -> ModelSizes:
    """Model type, encoder configuration, vocabulary size and positions from the content of a `config.json`."""
    names = model_map(_read_model_type(config))
    config = {**_CONFIG_DEFAULTS, **names.default_config, **config}
    _check_config(config, names)
    first = _read_int(config, "pad_token_id", 0) + 1 if names.positions_after_pad else 0
    counts = {name: _read_int({name: usual, **config}, name) for name, usual in names.layer_names.counts.items()}
    width = _read_int(config, "hidden_size")
    embedding_width = _read_int(config, "embedding_size") if names.projection.layer else width
    network = TransformerConfig(
        width=width,
        heads=_read_int(config, "num_attention_heads"),
        ffn_width=_read_int(config, "intermediate_size"),
        embedding_width=embedding_width if embedding_width != width else 0,
        num_segments=_read_int(config, "type_vocab_size"),
        activation=_ACTIVATIONS_BY_NAME[config["hidden_act"]],
        position_offset=first,
        pooler_activation=names.pooler_activation,
        dropout=_read_float(config, "hidden_dropout_prob"),
        attention_dropout=_read_float(config, "attention_probs_dropout_prob"),
        norm_eps=_read_float(config, "layer_norm_eps"),
        init_std=_read_float(config, "initializer_range"),
        **names.layer_names.from_config(counts),
    )
    positions = _read_int(config, "max_position_embeddings", first + 1) - first
    return ModelSizes(names.model_type, network, _read_int(config, "vocab_size"), positions)


def check_network(names: ModelMap, network: TransformerConfig, parts: Parts) -> None:
    """Refuse an encoder that the settings of a model type cannot describe under these heads."""
    found = names.inexpressible(network, parts)
    if found:
        raise InputError(
            f"This network cannot be written as {_with_article(names.name)}: it has {' and '.join(found)}, which "
            f"{names.name} has not. Export it as another model type."
        )


def _check_pad(names: ModelMap, network: TransformerConfig, pad: int) -> None:
    """Refuse a padding id that does not fit the position offset (RoBERTa)."""
    if names.positions_after_pad and pad + 1 != network.position_offset:
        raise InputError(
            f"This network cannot be written as {_with_article(names.name)}: its positions begin with number "
            f"{network.position_offset}, so its tokenizer should pad with id {network.position_offset - 1}, but "
            f"pads with id {pad}. Prepare the corpus with the tokenizer of the member (byte-level BPE pads with 1)."
        )


def _read_model_type(config: Mapping[str, Any]) -> ModelType:
    """The model type; refuses unknown types, and classes of another type."""
    kind, known = config.get("model_type", ModelType.BERT.value), [one.value for one in ModelType]
    classes = [one.name for one in architectures(ModelType(kind))] if kind in known else []
    unknown = [name for name in config.get("architectures") or () if name not in classes]
    if kind not in known or unknown:
        can = f"model type {kind} with one of {', '.join(sorted(classes))}" if classes else f"one of {', '.join(known)}"
        raise InputError(
            f"config.json describes {', '.join(unknown) or 'a network'} (model type {kind}); what can be read is {can}."
        )
    return ModelType(kind)


def _check_config(config: Mapping[str, Any], names: ModelMap) -> None:
    """Refuse settings that change the architecture."""
    wrong = [name for name, value in names.fixed_config.items() if config.get(name, value) != value]
    if wrong:
        found = ", ".join(f"{name} = {config[name]!r}" for name in wrong)
        raise InputError(
            f"config.json needs {_with_article(names.name)} of another kind ({found}), which cannot be read. Take "
            "another network."
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
