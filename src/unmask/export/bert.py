"""BERT in the names of Hugging Face: pre-trained (`BertForPreTraining` and its parts), and tuned for a task.

What arrives: how deep a trunk is and which heads it has. What leaves: the name table, which works both ways.
What never happens here: numbers or files. The table is names alone; the settings are in `bert_config.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    TAGGER = "BertForTokenClassification"
    """With a label for each token, and without a pooler."""
    READER = "BertForQuestionAnswering"
    """With two scores for each token: as the first of an answer, and as the last. Without a pooler."""
    CHOOSER = "BertForMultipleChoice"
    """With one number for each row; the rows of a question are its choices."""


FOR_A_TASK = frozenset({Architecture.CLASSIFIER, Architecture.TAGGER, Architecture.READER, Architecture.CHOOSER})
"""What a network becomes when it is tuned; the others are pre-trained."""
PRETRAINED_CLASSES, TASK_CLASSES, ENDS = "cls.seq_relationship", "classifier", "qa_outputs"
"""What they call a last layer."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands on the trunk."""

    tokens: bool
    pool: bool
    row: str = ""
    """What they call the classes of rows; empty where there are none."""
    each: str = ""
    """What they call the scores of each token; empty where there are none."""


PARTS = {
    Architecture.PRE_TRAINING: Parts(tokens=True, pool=True, row=PRETRAINED_CLASSES),
    Architecture.MASKED_LM: Parts(tokens=True, pool=False),
    Architecture.ENCODER: Parts(tokens=False, pool=True),
    Architecture.CLASSIFIER: Parts(tokens=False, pool=True, row=TASK_CLASSES),
    Architecture.TAGGER: Parts(tokens=False, pool=False, each=TASK_CLASSES),
    Architecture.READER: Parts(tokens=False, pool=False, each=ENDS),
    Architecture.CHOOSER: Parts(tokens=False, pool=True, row=TASK_CLASSES),
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


def parts_in(names: Iterable[str], named: Collection[str] = ()) -> Parts:
    """Which parts a folder holds, by canonical names. Published files often hold more than their class asks for.

    `classifier` may belong to rows or to tokens. The classes that the folder is `named` for decide; where it names
    none, a pooler does.
    """
    found = {name.rpartition(".")[0] for name in names}
    pool, classifier = f"{PREFIX}pooler.dense" in found, TASK_CLASSES in found
    by_token = classifier and (Architecture.TAGGER in named if named else not pool)
    rows = [TASK_CLASSES] * (classifier and not by_token) + [PRETRAINED_CLASSES] * (PRETRAINED_CLASSES in found)
    tokens = [TASK_CLASSES] * by_token + [ENDS] * (ENDS in found)
    return Parts(
        tokens="cls.predictions.transform.dense" in found,
        pool=pool or bool(rows),
        row=next(iter(rows), ""),
        each=next(iter(tokens), ""),
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
    yield from _pairs("row.classify", parts.row) if parts.row else _left("row.classify")
    yield from _pairs("each", parts.each) if parts.each else _left("each")


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
