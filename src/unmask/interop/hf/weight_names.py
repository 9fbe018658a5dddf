"""Tables of names, from the grammar of a dialect: all weights of a trunk, and of the heads that a class has.

What arrives: a grammar, the shape of a trunk and the parts on it. What leaves: the name table, which works both ways.
What never happens here: numbers or files. A table is names alone; the settings are in `settings.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from torch import Tensor

from unmask.config.network import TransformerConfig
from unmask.interop.hf.architecture import DOWNSTREAM_TASKS, HFTask
from unmask.interop.hf.layer_names import ENDS
from unmask.interop.hf.model_map import ModelMap, Parts
from unmask.interop.hf.weight_table import (
    IdentityLayer,
    Renamed,
    Stacked,
    Unmatched,
    WeightMapping,
    Weights,
    WeightTable,
)

_TRUNK = re.compile(r"(embeddings|embeddings_project|encoder|pooler)\.")
_OLD_ENDS = {"gamma": "weight", "beta": "bias"}
"""How layer norms were called in the files of 2018."""
_HEADS = (
    "row_head.pool",
    "row_head.classify",
    "token_classifier",
    "discriminator_head.dense",
    "discriminator_head.classify",
)
"""The layers of our heads, the head for tokens apart."""


def table_for(grammar: ModelMap, parts: Parts, trunk: TransformerConfig, name: str = "") -> WeightTable:
    """The table for weights with these parts, in canonical names, whatever the folder calls itself."""
    return WeightTable(name or grammar.name, tuple(_entries(grammar, parts, trunk)))


def encoder_table(grammar: ModelMap, parts: Parts, trunk: TransformerConfig, name: str) -> WeightTable:
    """The same in the names of a bare encoder, which have no prefix."""
    entries = _entries(grammar, parts, trunk)
    return WeightTable(name, tuple(_without_prefix(entry, grammar.prefix) for entry in entries))


def normalized_names(grammar: ModelMap, state: Mapping[str, Tensor]) -> Weights:
    """Their weights under today's names: every trunk with its prefix, layer norms with weight and bias."""
    return {_canonical(name, grammar.prefix): tensor for name, tensor in state.items()}


def parts_present(grammar: ModelMap, names: Iterable[str], named: Collection[HFTask] = ()) -> Parts:
    """Which parts a folder holds, by canonical names. Published files often hold more than their class asks for.

    A name such as `classifier` may belong to rows or to tokens. The classes that the folder is `named` for decide;
    where it names none, the first class that is there with all of its layers does.
    """
    found = {name.rpartition(".")[0] for name in names}
    taken: dict[str, str] = {}
    for purpose in sorted(grammar.heads_by_task, key=lambda one: (one not in named, one not in DOWNSTREAM_TASKS)):
        layers = grammar.heads_by_task[purpose].layers
        if found.issuperset(layers.values()):
            taken |= {o: t for o, t in layers.items() if o not in taken and t not in taken.values()}
    return Parts(has_lm_head=grammar.lm_head_names.dense in found, layers=taken)


def _canonical(name: str, prefix: str) -> str:
    stem, _, end = name.rpartition(".")
    name = f"{stem}.{_OLD_ENDS.get(end, end)}"
    return prefix + name if _TRUNK.match(name) else name


def _without_prefix(entry: WeightMapping, prefix: str) -> WeightMapping:
    assert isinstance(entry, Renamed | Stacked | Unmatched | IdentityLayer), "these are all the kinds of lines"
    return replace(entry, hf_names=tuple(name.removeprefix(prefix) for name in entry.hf_names))


def _entries(grammar: ModelMap, parts: Parts, trunk: TransformerConfig) -> Iterator[WeightMapping]:
    yield from _embedding(grammar, parts, trunk)
    yield from grammar.layer_names.mappings(trunk, grammar.prefix)
    yield from (
        _tokens(grammar)
        if parts.has_lm_head
        else _unmatched("lm_head.dense", "lm_head.norm", "lm_head.token", "lm_head")
    )
    for layer in _HEADS:
        yield from _pairs(layer, parts.layers[layer]) if layer in parts.layers else _unmatched(layer)


def _pairs(ours: str, theirs: str) -> Iterator[WeightMapping]:
    """Weight and bias of a layer that both sides have."""
    for end in ENDS:
        yield Renamed((f"{ours}.{end}",), (f"{theirs}.{end}",))


def _unmatched(*layers: str) -> Iterator[WeightMapping]:
    """Layers of a head of ours that the other side does not have."""
    for layer in layers:
        yield Unmatched(own_names=tuple(f"{layer}.{end}" for end in ENDS))


def _embedding(grammar: ModelMap, parts: Parts, trunk: TransformerConfig) -> Iterator[WeightMapping]:
    ours, theirs = "network.embed", f"{grammar.prefix}embeddings"
    tied = parts.has_lm_head
    yield Renamed(
        (f"{ours}.token.weight", *(("lm_head.token.weight",) if tied else ())),
        (f"{theirs}.word_embeddings.weight", *(grammar.lm_head_names.output if tied else ())),
    )
    yield Renamed((f"{ours}.position.weight",), (f"{theirs}.position_embeddings.weight",))
    yield Renamed((f"{ours}.segment.weight",), (f"{theirs}.token_type_embeddings.weight",))
    yield from _pairs(f"{ours}.norm", f"{theirs}.LayerNorm")
    yield from _projection(grammar, trunk)
    yield Unmatched(hf_names=(f"{theirs}.position_ids", f"{theirs}.token_type_ids"))


def _projection(grammar: ModelMap, trunk: TransformerConfig) -> Iterator[WeightMapping]:
    layer = f"{grammar.prefix}{grammar.projection.layer}"
    if trunk.token_width != trunk.width:
        yield from _pairs("network.embed.project", layer)
    elif grammar.projection.always:
        yield IdentityLayer(tuple(f"{layer}.{end}" for end in ENDS), trunk.width)


def _tokens(grammar: ModelMap) -> Iterator[WeightMapping]:
    names = grammar.lm_head_names
    yield from _pairs("lm_head.dense", names.dense)
    yield from _pairs("lm_head.norm", names.norm)
    yield Renamed(("lm_head.bias",), names.bias)
