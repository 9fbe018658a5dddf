"""Model maps by model type, the classes of `transformers`, and the weight table of each class."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from torch import Tensor

from unmask.config.model_type import ModelType
from unmask.config.network import NetworkConfig, TransformerConfig
from unmask.interop.hf.layer_names import SUFFIXES
from unmask.interop.hf.model_map import DOWNSTREAM_TASKS, Architecture, HFTask, ModelMap, Parts
from unmask.interop.hf.models.albert import ALBERT
from unmask.interop.hf.models.bert import BERT, ERNIE
from unmask.interop.hf.models.electra import ELECTRA
from unmask.interop.hf.models.roberta import ROBERTA
from unmask.interop.hf.weight_table import (
    IdentityLayer,
    Renamed,
    Stacked,
    Unmatched,
    WeightMapping,
    Weights,
    WeightTable,
)
from unmask.nets.model import EncoderWithHeads

_ENCODER_NAME = re.compile(r"(embeddings|embeddings_project|encoder|pooler)\.")
_OLD_SUFFIXES = {"gamma": "weight", "beta": "bias"}
"""The names of layer-norm weights in files of 2018."""
_HEAD_LAYERS = (
    "row_head.pool",
    "row_head.classify",
    "token_classifier",
    "discriminator_head.dense",
    "discriminator_head.classify",
)
"""The layers of our heads, except the LM head."""


def model_map(model_type: ModelType) -> ModelMap:
    """The model map of a model type."""
    match model_type:
        case ModelType.BERT:
            return BERT
        case ModelType.ROBERTA:
            return ROBERTA
        case ModelType.ALBERT:
            return ALBERT
        case ModelType.ERNIE:
            return ERNIE
        case ModelType.ELECTRA:
            return ELECTRA


def architectures(model_type: ModelType) -> Iterator[Architecture]:
    """All classes of a model type that a folder can be written for."""
    return (Architecture(model_type, task) for task in model_map(model_type).heads_by_task)


def tasks_of(model_type: ModelType, names: Iterable[str]) -> frozenset[HFTask]:
    """The tasks of the classes with these names; unknown names are ignored."""
    given = {*names}
    return frozenset(one.task for one in architectures(model_type) if one.name in given)


def architecture_named(name: str) -> Architecture:
    """The class with this name, which must be one that can be written."""
    (found,) = (one for model_type in ModelType for one in architectures(model_type) if one.name == name)
    return found


def parts_of(architecture: Architecture) -> Parts:
    """The heads of a class."""
    return model_map(architecture.model_type).heads_by_task[architecture.task]


def can_express(model_type: ModelType, network: NetworkConfig) -> bool:
    """Whether the settings of a model type can describe an encoder."""
    return isinstance(network, TransformerConfig) and not model_map(model_type).inexpressible(network, Parts())


def model_type_for(network: NetworkConfig, wanted: ModelType) -> ModelType:
    """The wanted model type if it can describe the encoder, else the first that can; the wanted one if none can."""
    return next((one for one in (wanted, *ModelType) if can_express(one, network)), wanted)


def best_architecture(model: EncoderWithHeads, model_type: ModelType = ModelType.BERT) -> Architecture:
    """The class that keeps as many heads of a pre-trained network as possible."""
    has_head = {
        HFTask.DISCRIMINATOR: model.discriminator_head is not None,
        HFTask.PRE_TRAINING: model.lm_head is not None and model.row_head is not None,
        HFTask.MASKED_LM: model.lm_head is not None,
        HFTask.ENCODER: True,
    }
    known = model_map(model_type).heads_by_task
    return Architecture(model_type, next(task for task, has in has_head.items() if has and task in known))


def weight_table_for(architecture: Architecture, network: TransformerConfig) -> WeightTable:
    """The weight table of a class. Layers whose sharing it cannot express are written one by one."""
    names = model_map(architecture.model_type)
    make = encoder_table if architecture.task is HFTask.ENCODER else table_for
    return make(names, parts_of(architecture), names.layer_names.expressible(network), architecture.name)


def table_for(names: ModelMap, parts: Parts, network: TransformerConfig, name: str = "") -> WeightTable:
    """The weight table of an encoder with these heads, in normalized names."""
    return WeightTable(name or names.name, tuple(_mappings(names, parts, network)))


def encoder_table(names: ModelMap, parts: Parts, network: TransformerConfig, name: str) -> WeightTable:
    """The weight table of a bare encoder, whose names have no prefix."""
    mappings = _mappings(names, parts, network)
    return WeightTable(name, tuple(_without_prefix(mapping, names.prefix) for mapping in mappings))


def normalized_names(names: ModelMap, state: Mapping[str, Tensor]) -> Weights:
    """The weights under current names: encoder weights with their prefix, layer norms with weight and bias."""
    return {_normalized(name, names.prefix): tensor for name, tensor in state.items()}


def parts_present(names: ModelMap, weights: Iterable[str], tasks: Collection[HFTask] = ()) -> Parts:
    """The heads in a folder, by normalized weight names. Published files often hold more than their class needs.

    A name such as `classifier` may belong to rows or to tokens. The `tasks` of the classes that the folder names
    decide; without them, the first class whose layers are all present.
    """
    found = {name.rpartition(".")[0] for name in weights}
    taken: dict[str, str] = {}
    for task in sorted(names.heads_by_task, key=lambda one: (one not in tasks, one not in DOWNSTREAM_TASKS)):
        layers = names.heads_by_task[task].layers
        if found.issuperset(layers.values()):
            taken |= {o: t for o, t in layers.items() if o not in taken and t not in taken.values()}
    return Parts(has_lm_head=names.lm_head_names.dense in found, layers=taken)


def _normalized(name: str, prefix: str) -> str:
    stem, _, suffix = name.rpartition(".")
    name = f"{stem}.{_OLD_SUFFIXES.get(suffix, suffix)}"
    return prefix + name if _ENCODER_NAME.match(name) else name


def _without_prefix(mapping: WeightMapping, prefix: str) -> WeightMapping:
    assert isinstance(mapping, Renamed | Stacked | Unmatched | IdentityLayer), "these are all kinds of mappings"
    return replace(mapping, hf_names=tuple(name.removeprefix(prefix) for name in mapping.hf_names))


def _mappings(names: ModelMap, parts: Parts, network: TransformerConfig) -> Iterator[WeightMapping]:
    yield from _embeddings(names, parts, network)
    yield from names.layer_names.mappings(network, names.prefix)
    if parts.has_lm_head:
        yield from _lm_head(names)
    else:
        yield from _unmatched("lm_head.dense", "lm_head.norm", "lm_head.token", "lm_head")
    for layer in _HEAD_LAYERS:
        yield from _layer(layer, parts.layers[layer]) if layer in parts.layers else _unmatched(layer)


def _layer(ours: str, theirs: str) -> Iterator[WeightMapping]:
    """Weight and bias of a layer that both sides have."""
    for suffix in SUFFIXES:
        yield Renamed((f"{ours}.{suffix}",), (f"{theirs}.{suffix}",))


def _unmatched(*layers: str) -> Iterator[WeightMapping]:
    """Layers of our heads that the class does not have."""
    for layer in layers:
        yield Unmatched(own_names=tuple(f"{layer}.{suffix}" for suffix in SUFFIXES))


def _embeddings(names: ModelMap, parts: Parts, network: TransformerConfig) -> Iterator[WeightMapping]:
    ours, theirs = "network.embed", f"{names.prefix}embeddings"
    tied = parts.has_lm_head
    yield Renamed(
        (f"{ours}.token.weight", *(("lm_head.token.weight",) if tied else ())),
        (f"{theirs}.word_embeddings.weight", *(names.lm_head_names.output if tied else ())),
    )
    yield Renamed((f"{ours}.position.weight",), (f"{theirs}.position_embeddings.weight",))
    yield Renamed((f"{ours}.segment.weight",), (f"{theirs}.token_type_embeddings.weight",))
    yield from _layer(f"{ours}.norm", f"{theirs}.LayerNorm")
    yield from _projection(names, network)
    yield Unmatched(hf_names=(f"{theirs}.position_ids", f"{theirs}.token_type_ids"))


def _projection(names: ModelMap, network: TransformerConfig) -> Iterator[WeightMapping]:
    layer = f"{names.prefix}{names.projection.layer}"
    if network.token_width != network.width:
        yield from _layer("network.embed.project", layer)
    elif names.projection.always:
        yield IdentityLayer(tuple(f"{layer}.{suffix}" for suffix in SUFFIXES), network.width)


def _lm_head(names: ModelMap) -> Iterator[WeightMapping]:
    yield from _layer("lm_head.dense", names.lm_head_names.dense)
    yield from _layer("lm_head.norm", names.lm_head_names.norm)
    yield Renamed(("lm_head.bias",), names.lm_head_names.bias)
