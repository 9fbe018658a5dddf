"""Tables of names, from the grammar of a dialect: all weights of a trunk, and of the heads that a class has.

What arrives: a grammar, the shape of a trunk and the parts on it. What leaves: the name table, which works both ways.
What never happens here: numbers or files. A table is names alone; the settings are in `settings.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from torch import Tensor

from unmask.export.architecture import FOR_A_TASK, Purpose
from unmask.export.grammar import Grammar, Parts
from unmask.export.stack import ENDS
from unmask.export.table import Entry, Left, NameTable, Same, Stacked, Unmoved, Weights
from unmask.nets.trunk import Trunk

_TRUNK = re.compile(r"(embeddings|embeddings_project|encoder|pooler)\.")
_OLD_ENDS = {"gamma": "weight", "beta": "bias"}
"""How layer norms were called in the files of 2018."""
_HEADS = ("row.pool", "row.classify", "each", "replaced.dense", "replaced.classify")
"""The layers of our heads, the head for tokens apart."""


def table_for(grammar: Grammar, parts: Parts, trunk: Trunk, name: str = "") -> NameTable:
    """The table for weights with these parts, in canonical names, whatever the folder calls itself."""
    return NameTable(name or grammar.name, tuple(_entries(grammar, parts, trunk)))


def bare_table(grammar: Grammar, parts: Parts, trunk: Trunk, name: str) -> NameTable:
    """The same in the names of a bare encoder, which have no prefix."""
    entries = _entries(grammar, parts, trunk)
    return NameTable(name, tuple(_bare(entry, grammar.prefix) for entry in entries))


def canonical(grammar: Grammar, state: Mapping[str, Tensor]) -> Weights:
    """Their weights under today's names: every trunk with its prefix, layer norms with weight and bias."""
    return {_canonical(name, grammar.prefix): tensor for name, tensor in state.items()}


def parts_in(grammar: Grammar, names: Iterable[str], named: Collection[Purpose] = ()) -> Parts:
    """Which parts a folder holds, by canonical names. Published files often hold more than their class asks for.

    A name such as `classifier` may belong to rows or to tokens. The classes that the folder is `named` for decide;
    where it names none, the first class that is there with all of its layers does.
    """
    found = {name.rpartition(".")[0] for name in names}
    taken: dict[str, str] = {}
    for purpose in sorted(grammar.classes, key=lambda one: (one not in named, one not in FOR_A_TASK)):
        layers = grammar.classes[purpose].layers
        if found.issuperset(layers.values()):
            taken |= {o: t for o, t in layers.items() if o not in taken and t not in taken.values()}
    return Parts(tokens=grammar.tokens.dense in found, layers=taken)


def _canonical(name: str, prefix: str) -> str:
    stem, _, end = name.rpartition(".")
    name = f"{stem}.{_OLD_ENDS.get(end, end)}"
    return prefix + name if _TRUNK.match(name) else name


def _bare(entry: Entry, prefix: str) -> Entry:
    assert isinstance(entry, Same | Stacked | Left | Unmoved), "these are all the kinds of lines"
    return replace(entry, theirs=tuple(name.removeprefix(prefix) for name in entry.theirs))


def _entries(grammar: Grammar, parts: Parts, trunk: Trunk) -> Iterator[Entry]:
    yield from _embedding(grammar, parts, trunk)
    yield from grammar.stack.entries(trunk, grammar.prefix)
    yield from _tokens(grammar) if parts.tokens else _left("tokens.dense", "tokens.norm", "tokens.token", "tokens")
    for layer in _HEADS:
        yield from _pairs(layer, parts.layers[layer]) if layer in parts.layers else _left(layer)


def _pairs(ours: str, theirs: str) -> Iterator[Entry]:
    """Weight and bias of a layer that both sides have."""
    for end in ENDS:
        yield Same((f"{ours}.{end}",), (f"{theirs}.{end}",))


def _left(*layers: str) -> Iterator[Entry]:
    """Layers of a head of ours that the other side does not have."""
    for layer in layers:
        yield Left(ours=tuple(f"{layer}.{end}" for end in ENDS))


def _embedding(grammar: Grammar, parts: Parts, trunk: Trunk) -> Iterator[Entry]:
    ours, theirs = "trunk.embed", f"{grammar.prefix}embeddings"
    tied = parts.tokens
    yield Same(
        (f"{ours}.token.weight", *(("tokens.token.weight",) if tied else ())),
        (f"{theirs}.word_embeddings.weight", *(grammar.tokens.output if tied else ())),
    )
    yield Same((f"{ours}.position.weight",), (f"{theirs}.position_embeddings.weight",))
    yield Same((f"{ours}.segment.weight",), (f"{theirs}.token_type_embeddings.weight",))
    yield from _pairs(f"{ours}.norm", f"{theirs}.LayerNorm")
    yield from _projection(grammar, trunk)
    yield Left(theirs=(f"{theirs}.position_ids", f"{theirs}.token_type_ids"))


def _projection(grammar: Grammar, trunk: Trunk) -> Iterator[Entry]:
    layer = f"{grammar.prefix}{grammar.projection.layer}"
    if trunk.token_width != trunk.width:
        yield from _pairs("trunk.embed.project", layer)
    elif grammar.projection.always:
        yield Unmoved(tuple(f"{layer}.{end}" for end in ENDS), trunk.width)


def _tokens(grammar: Grammar) -> Iterator[Entry]:
    names = grammar.tokens
    yield from _pairs("tokens.dense", names.dense)
    yield from _pairs("tokens.norm", names.norm)
    yield Same(("tokens.bias",), names.bias)
