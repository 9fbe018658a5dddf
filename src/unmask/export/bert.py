"""BERT in the names of Hugging Face: `BertForPreTraining`, `BertForMaskedLM`, `BertModel`, and tuned for a task.

What arrives: how deep a trunk is and which heads it has. What leaves: the name table, which works both ways.
What never happens here: numbers or files. The table is names alone; the settings are in `bert_config.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor

from unmask.export.table import Entry, Left, NameTable, Same, Stacked, Weights
from unmask.nets.model import Model

PREFIX = "bert."
"""What the names of the trunk begin with where heads stand on it; a bare `BertModel` does without."""
_ENDS = ("weight", "bias")
_OLD_ENDS = {"gamma": "weight", "beta": "bias"}
"""How layer norms were called in the files of 2018."""


class Architecture(StrEnum):
    """The classes that a folder can be written for."""

    PRE_TRAINING = "BertForPreTraining"
    """With the head for tokens and the head for rows."""
    MASKED_LM = "BertForMaskedLM"
    """With the head for tokens."""
    ENCODER = "BertModel"
    """With the pooler of the head for rows, and without its classes."""
    CLASSIFIER = "BertForSequenceClassification"
    """With a head for rows that was tuned for a task: its classes are labels, or one number."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands on the trunk."""

    tokens: bool
    pool: bool
    classify: bool
    labels: bool = False
    """Whether the classes are those of a task, and not of pre-training."""


PARTS = {
    Architecture.PRE_TRAINING: Parts(tokens=True, pool=True, classify=True),
    Architecture.MASKED_LM: Parts(tokens=True, pool=False, classify=False),
    Architecture.ENCODER: Parts(tokens=False, pool=True, classify=False),
    Architecture.CLASSIFIER: Parts(tokens=False, pool=True, classify=True, labels=True),
}


def fitting(model: Model) -> Architecture:
    """The architecture that leaves nothing of a pre-trained network behind, or as little as can be."""
    if model.tokens is None:
        return Architecture.ENCODER
    return Architecture.MASKED_LM if model.row is None else Architecture.PRE_TRAINING


def table_of(architecture: Architecture, depth: int) -> NameTable:
    """The table that a folder of this architecture is written with."""
    prefix = "" if architecture is Architecture.ENCODER else PREFIX
    return NameTable(architecture.value, tuple(_entries(PARTS[architecture], depth, prefix)))


def table_for(parts: Parts, depth: int) -> NameTable:
    """The table for weights with these parts, in canonical names, whatever the folder calls itself."""
    return NameTable("BERT", tuple(_entries(parts, depth, PREFIX)))


def canonical(state: Mapping[str, Tensor]) -> Weights:
    """Their weights under today's names: every trunk with its prefix, layer norms with weight and bias."""
    return {_canonical(name): tensor for name, tensor in state.items()}


def parts_in(names: Iterable[str]) -> Parts:
    """Which parts a folder holds, by canonical names. Published files often hold more than their class asks for."""
    found = {name.rpartition(".")[0] for name in names}
    labels = "classifier" in found
    classify = labels or "cls.seq_relationship" in found
    return Parts(
        tokens="cls.predictions.transform.dense" in found,
        pool=classify or f"{PREFIX}pooler.dense" in found,
        classify=classify,
        labels=labels,
    )


def _canonical(name: str) -> str:
    stem, _, end = name.rpartition(".")
    name = f"{stem}.{_OLD_ENDS.get(end, end)}"
    return PREFIX + name if re.match(r"(embeddings|encoder|pooler)\.", name) else name


def _entries(parts: Parts, depth: int, prefix: str) -> Iterator[Entry]:
    yield from _embedding(parts, prefix)
    for number in range(depth):
        yield from _layer(f"trunk.layers.{number}", f"{prefix}encoder.layer.{number}")
    yield from _tokens() if parts.tokens else _left("tokens.dense", "tokens.norm", "tokens.token", "tokens")
    yield from _pairs("row.pool", f"{prefix}pooler.dense") if parts.pool else _left("row.pool")
    classes = "classifier" if parts.labels else "cls.seq_relationship"
    yield from _pairs("row.classify", classes) if parts.classify else _left("row.classify")


def _pairs(ours: str, theirs: str) -> Iterator[Entry]:
    """Weight and bias of a layer that both sides have."""
    for end in _ENDS:
        yield Same((f"{ours}.{end}",), (f"{theirs}.{end}",))


def _left(*layers: str) -> Iterator[Entry]:
    """Layers of a head of ours that the other side does not have."""
    for layer in layers:
        yield Left(ours=tuple(f"{layer}.{end}" for end in _ENDS))


def _embedding(parts: Parts, prefix: str) -> Iterator[Entry]:
    ours, theirs = "trunk.embed", f"{prefix}embeddings"
    output, decoder = ("tokens.token.weight",), ("cls.predictions.decoder.weight",)
    yield Same(
        (f"{ours}.token.weight", *(output if parts.tokens else ())),
        (f"{theirs}.word_embeddings.weight", *(decoder if parts.tokens else ())),
    )
    yield Same((f"{ours}.position.weight",), (f"{theirs}.position_embeddings.weight",))
    yield Same((f"{ours}.segment.weight",), (f"{theirs}.token_type_embeddings.weight",))
    yield from _pairs(f"{ours}.norm", f"{theirs}.LayerNorm")
    yield Left(theirs=(f"{theirs}.position_ids", f"{theirs}.token_type_ids"))


def _layer(ours: str, theirs: str) -> Iterator[Entry]:
    attention = f"{theirs}.attention"
    for end in _ENDS:
        parts = tuple(f"{attention}.self.{name}.{end}" for name in ("query", "key", "value"))
        yield Stacked(f"{ours}.attend.work.qkv.{end}", parts)
    yield from _pairs(f"{ours}.attend.work.out", f"{attention}.output.dense")
    yield from _pairs(f"{ours}.attend.norm", f"{attention}.output.LayerNorm")
    yield from _pairs(f"{ours}.feed.work.up", f"{theirs}.intermediate.dense")
    yield from _pairs(f"{ours}.feed.work.down", f"{theirs}.output.dense")
    yield from _pairs(f"{ours}.feed.norm", f"{theirs}.output.LayerNorm")


def _tokens() -> Iterator[Entry]:
    theirs = "cls.predictions"
    yield from _pairs("tokens.dense", f"{theirs}.transform.dense")
    yield from _pairs("tokens.norm", f"{theirs}.transform.LayerNorm")
    yield Same(("tokens.bias",), (f"{theirs}.bias", f"{theirs}.decoder.bias"))
