"""Rows of a conversation: is every turn real, or was one put in its place (ERNIE's dialogue language model)?

What arrives: a corpus that holds conversations, a row length and a key. What leaves: a plan of rows
`[CLS] turn [SEP] turn [SEP] …` in which the segment says who speaks, and a fact about each row.
What never happens here: a fake turn from the same conversation, or a turn that stands in no row.

Rows follow each other through a conversation, each as many turns long as it drew, or as fit. Where too few turns are
left at the end, the last row reaches back. In some rows one turn, whoever speaks it, is exchanged for a turn of another
conversation. Too long a row loses the ends of its longest turns. Every draw is addressed by the turn at which a row
begins.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from unmask.errors import RecipeError
from unmask.examples.plan import Frame, Plan
from unmask.keys import Key, Lane
from unmask.ragged import offsets
from unmask.records import Bits, Flag, Ints
from unmask.shards.corpus import Corpus, Shard

QUERY, REPLY = 2, 3
"""The segments of those who speak. 0 and 1 are those of a pair."""
FACT = "reply"
"""0: all turns are real. 1: one of them is fake."""
_DRAWS = 5
_UNIT = float(2**64)


@dataclass(frozen=True, slots=True)
class Dialogues:
    """Some turns of a conversation, of which one may be fake. Fact `reply`: 0 all are real, 1 one is not."""

    fewest: int = 2
    most: int = 4
    """Turns in a row; each number from `fewest` to `most` is as likely."""
    fake: float = 0.5
    """The share of rows with a fake turn."""

    def __post_init__(self) -> None:
        if not 2 <= self.fewest <= self.most <= 255:
            raise RecipeError(f"Dialogues needs 2 or more turns in a row, found {self.fewest} to {self.most}.")
        if not 0 <= self.fake <= 1:
            raise RecipeError(f"Dialogues needs a share of fake rows between 0 and 1, found {self.fake}.")

    apart: ClassVar[bool] = False
    segments: ClassVar[int] = 4

    @property
    def gives(self) -> frozenset[str]:
        """Whether a turn is fake."""
        return frozenset({FACT})

    @property
    def frame(self) -> Frame:
        """`[CLS] turn [SEP] turn [SEP]`."""
        return Frame()

    def plan(self, corpus: Corpus, length: int, key: Key) -> Plan:
        """Walk all conversations once and draw the rows."""
        walk = _Walk(self, [_talks(shard, self.fewest) for shard in corpus.shards], length, key)
        self._check(walk.last[-1], corpus)
        start, size, segment, rows, facts = (array("q") for _ in range(5))
        for row in walk.rows():
            start.extend(row.start)
            size.extend(row.size)
            segment.extend(row.role)
            rows.append(len(row.start))
            facts.append(row.fake)
        return Plan(
            start=_numbers(start),
            length=_numbers(size).astype(np.int32),
            segment=_numbers(segment).astype(np.uint8),
            document=np.zeros(len(start), dtype=np.uint16),
            rows=offsets(_numbers(rows)),
            facts=MappingProxyType({FACT: _numbers(facts).astype(np.int8)}),
        )

    def _check(self, found: int, corpus: Corpus) -> None:
        if found < 2:
            have = "has one" if found else "has none"
            raise RecipeError(
                f"Dialogues takes its rows from conversations of {self.fewest} or more turns and its fake turns from "
                f"others of them, but the corpus in {corpus.folder} {have}. Prepare it with: unmask prepare CORPUS "
                "--dialogues TALKS.jsonl --for ernie --out NEW_FOLDER; or take a recipe without this task, such as "
                "ernie:text."
            )


class _Talks(NamedTuple):
    """The turns of one shard, as addresses, and the number of each conversation's first turn, with one for the end."""

    start: Ints
    size: Ints
    role: Bits
    first: Ints


class _Row(NamedTuple):
    """The turns of a row, and whether one of them is fake."""

    start: Sequence[int]
    size: Sequence[int]
    role: Sequence[int]
    fake: int


def _talks(shard: Shard, fewest: int) -> _Talks:
    """The conversations of a shard that have enough turns."""
    turns, border = shard.turns, shard.documents
    home = np.searchsorted(border, turns, side="right") - 1
    count = np.bincount(home, minlength=len(border) - 1)
    end = np.minimum(np.append(turns[1:], len(shard.ids))[: len(turns)], border[home + 1])
    kept = count[home] >= fewest
    reply = (np.asarray(shard.units[turns]) & Flag.REPLY) != 0
    role = np.where(reply, REPLY, QUERY).astype(np.uint8)
    first = offsets(count[count >= fewest])
    return _Talks(turns[kept] + shard.base, (end - turns)[kept], role[kept], first)


class _Walk:
    """One pass over the conversations of all shards."""

    def __init__(self, how: Dialogues, shards: Sequence[_Talks], length: int, key: Key) -> None:
        self.how, self.shards, self.length, self.key = how, shards, length, key
        self.last: list[int] = np.cumsum([len(talks.first) - 1 for talks in shards]).tolist()
        # Every turn keeps a token at least, beside its [SEP]; a row of 8 tokens has room for 3 of them.
        self.most = min(how.most, (length - 1) // 2)

    def rows(self) -> Iterator[_Row]:
        """The rows of all conversations, in their order."""
        for number, talks in enumerate(self.shards):
            turns = np.arange(len(talks.start))
            draws = self.key.fold("dialogues", number).fold(turns).draws(Lane.PLAN, _DRAWS)
            before = self.last[number] - (len(talks.first) - 1)
            for index, (first, last) in enumerate(itertools.pairwise(talks.first.tolist())):
                while first < last:
                    draw = draws[first].tolist()
                    begin, end = self._window(talks, first, last, draw[0])
                    yield self._row(talks, begin, end, before + index, draw)
                    first = end

    def _window(self, talks: _Talks, first: int, last: int, draw: int) -> tuple[int, int]:
        """The turns of the row that begins at `first`: as many whole ones as were drawn and fit, but not too few."""
        fewest = min(self.how.fewest, self.most)
        end = min(first + fewest + draw * (self.most - fewest + 1) // 2**64, last)
        begin = min(first, end - fewest)
        while end - begin > fewest and int(talks.size[begin:end].sum()) > Frame().room(self.length, end - begin):
            end -= 1
        return begin, end

    def _row(self, talks: _Talks, begin: int, end: int, own: int, draw: list[int]) -> _Row:
        start, size = talks.start[begin:end].tolist(), talks.size[begin:end].tolist()
        fake = draw[1] / _UNIT < self.how.fake
        if fake:
            place = draw[2] * len(start) // 2**64
            start[place], size[place] = self._other(own, draw)
        most = _level(size, Frame().room(self.length, len(size)))
        return _Row(start, [min(one, most) for one in size], talks.role[begin:end].tolist(), int(fake))

    def _other(self, own: int, draw: list[int]) -> tuple[int, int]:
        """A turn of another conversation: any of them with equal chances, and any of its turns."""
        other = draw[3] * (self.last[-1] - 1) // 2**64
        other += other >= own
        number = int(np.searchsorted(self.last, other, side="right"))
        talks = self.shards[number]
        local = other - (self.last[number] - (len(talks.first) - 1))
        first, last = talks.first[local : local + 2].tolist()
        turn = first + draw[4] * (last - first) // 2**64
        return int(talks.start[turn]), int(talks.size[turn])


def _level(sizes: Sequence[int], room: int) -> int:
    """The length to which turns must be cut so that all fit; the longest of them if they do."""
    for left, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size > room // left:
            return room // left
        room -= size
    return max(sizes)


def _numbers(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.int64) if values else np.zeros(0, dtype=np.int64)
