"""The plan: which pieces of the corpus make up each row, as one compact table of numbers.

What arrives: what an example builder decided. What leaves: `Plan`, and rows built from it at random, many at once.
What never happens here: looking at text, or hiding anything.

A row is a list of pieces; a piece is a stretch of neighbouring tokens. Every format of the family is of this kind, so
planning differs from builder to builder but building is one function: fetch the pieces and place the special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unmask.keys import Key
from unmask.ragged import offsets, ranges
from unmask.records import Bits, Bools, Example, Flag, Ids, Ints, UnitMap
from unmask.shards.corpus import Corpus
from unmask.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the special tokens of a row stand."""

    opens: bool = True
    """[CLS] before the first piece of every document part that attention is kept inside."""
    ends: bool = True
    """[SEP] after every piece."""

    def room(self, length: int, pieces: int) -> int:
        """How many text tokens fit into a row of `length` with that many pieces."""
        return length - int(self.opens) - (pieces if self.ends else 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows as pieces. `rows[i]:rows[i + 1]` are the pieces of row i."""

    start: Ints
    """The address of each piece's first token."""
    length: npt.NDArray[np.int32]
    segment: Bits
    document: npt.NDArray[np.uint16]
    """Which part of its row a piece belongs to: parts do not see each other where borders are kept."""
    rows: Ints
    facts: Mapping[str, npt.NDArray[np.int8]] = field(default_factory=lambda: MappingProxyType({}))
    continues: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.rows) - 1

    @property
    def size(self) -> int:
        """The bytes this plan takes in memory."""
        return sum(array.nbytes for array in (self.start, self.length, self.segment, self.document, self.rows))


class Examples(Protocol):
    """Decides which pieces make a row. A frozen dataclass that is its own configuration."""

    @property
    def gives(self) -> frozenset[str]:
        """The facts it can state about a row."""

    @property
    def frame(self) -> Frame:
        """Where its special tokens stand."""

    @property
    def segments(self) -> int:
        """How many kinds of segment it numbers tokens by."""

    @property
    def apart(self) -> bool:
        """Whether the documents of a row must not see each other."""

    def plan(self, corpus: Corpus, length: int, key: Key) -> Plan:
        """Plan every row of at most `length` tokens: global, cheap, and a pure function of its arguments."""


def build(corpus: Corpus, plan: Plan, rows: Ints, frame: Frame, vocab: Vocab) -> Example:
    """Build some rows of a plan: fetch their pieces and place the special tokens."""
    count = plan.rows[rows + 1] - plan.rows[rows]
    piece = ranges(plan.rows[rows], count)
    first = offsets(count)[:-1]
    length = plan.length[piece].astype(np.int64)
    part = plan.document[piece]
    opens = np.zeros(len(piece), dtype=np.int64)
    if frame.opens:
        opens[1:] = part[1:] != part[:-1]
        opens[first] = 1
    taken = opens + length + int(frame.ends)
    begin = offsets(taken)
    out = _Rows(int(begin[-1]), vocab)
    text = begin[:-1] + opens
    corpus.gather(plan.start[piece], length, out.ids, out.bits, text)
    out.cut(text)
    out.special(begin[:-1][opens > 0], vocab.cls)
    if frame.ends:
        out.special(text + length, vocab.sep)
    return Example(
        ids=out.ids,
        segment=np.repeat(plan.segment[piece], taken),
        document=np.repeat(part.astype(np.int32), taken),
        fixed=out.fixed,
        units=UnitMap(out.bits),
        rows=np.append(begin[first], begin[-1]),
        facts=MappingProxyType({name: value[rows].astype(np.int64) for name, value in plan.facts.items()}),
        continues=plan.continues[rows] if len(plan.continues) else plan.continues,
    )


class _Rows:
    """The arrays of the rows being built."""

    def __init__(self, size: int, vocab: Vocab) -> None:
        self.ids: Ids = np.empty(size, dtype=np.int32)
        self.bits: Bits = np.empty(size, dtype=np.uint8)
        self.fixed: Bools = np.zeros(size, dtype=np.bool_)

    def cut(self, at: Ints) -> None:
        """A piece begins here: so do its first word and sentence, and what is left of a cut phrase or entity."""
        bits = self.bits[at]
        whole = (((bits & Flag.IN_PHRASE) != 0) * Flag.PHRASE) | (((bits & Flag.IN_ENTITY) != 0) * Flag.ENTITY)
        self.bits[at] = bits | whole.astype(np.uint8) | Flag.BORDER

    def special(self, at: Ints, token: int) -> None:
        self.ids[at] = token
        self.bits[at] = Flag.BORDER
        self.fixed[at] = True
