"""Rows of dialogue turns, `[CLS] turn [SEP] turn [SEP] …`, of which one may be fake (ERNIE's dialogue language model).

The segment is the speaker. Rows follow each other through a conversation, each with as many turns as were drawn or fit;
if too few turns are left, the last row overlaps the previous one. In some rows one turn is replaced by a turn of
another conversation. A row that is too long loses the ends of its longest turns. Draws are keyed by the first turn.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import offsets
from unmask.core.records import Bits, Ints, UnitFlag
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.input_formats.row_plan import CLS_SEP, RowPlan, SpecialTokenTemplate

QUERY, REPLY = 2, 3
"""The segments of those who speak. 0 and 1 are those of a pair."""
REPLY_FACT = "reply"
"""0: all turns are real. 1: one of them is fake."""
_DRAWS = 5
_UNIT = float(2**64)


@dataclass(frozen=True, slots=True)
class Dialogues:
    """Some turns of a conversation, of which one may be fake. Fact `reply`: 0 all are real, 1 one is not."""

    min_turns: int = 2
    max_turns: int = 4
    """Turns in a row; each number from `fewest` to `most` is as likely."""
    fake_fraction: float = 0.5
    """The share of rows with a fake turn."""

    def __post_init__(self) -> None:
        if not 2 <= self.min_turns <= self.max_turns <= 255:
            raise RecipeError(f"Dialogues needs 2 or more turns in a row, found {self.min_turns} to {self.max_turns}.")
        if not 0 <= self.fake_fraction <= 1:
            raise RecipeError(f"Dialogues needs a share of fake rows between 0 and 1, found {self.fake_fraction}.")

    template: ClassVar[SpecialTokenTemplate] = CLS_SEP
    isolate_documents: ClassVar[bool] = False
    num_streams: ClassVar[int] = 0
    num_segments: ClassVar[int] = 4

    @property
    def row_facts(self) -> frozenset[str]:
        """Whether a turn is fake."""
        return frozenset({REPLY_FACT})

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Walk all conversations once and draw the rows."""
        walk = _TurnRowSampler(self, [_dialogue_turns(shard, self.min_turns) for shard in corpus.shards], length, key)
        self._check(walk.last[-1], corpus)
        start, size, segment, rows, facts = (array("q") for _ in range(5))
        for row in walk.rows():
            start.extend(row.start)
            size.extend(row.size)
            segment.extend(row.role)
            rows.append(len(row.start))
            facts.append(row.fake)
        return RowPlan(
            start=_to_array(start),
            length=_to_array(size).astype(np.int32),
            segment=_to_array(segment).astype(np.uint8),
            document=np.zeros(len(start), dtype=np.uint16),
            rows=offsets(_to_array(rows)),
            facts=MappingProxyType({REPLY_FACT: _to_array(facts).astype(np.int8)}),
        )

    def _check(self, found: int, corpus: Corpus) -> None:
        if found < 2:
            have = "has one" if found else "has none"
            raise RecipeError(
                f"Dialogues takes its rows from conversations of {self.min_turns} or more turns and its fake turns "
                f"from others of them, but the corpus in {corpus.folder} {have}. Prepare it with: unmask prepare "
                "CORPUS --dialogues TALKS.jsonl --for ernie --out NEW_FOLDER; or take a recipe without this task, "
                "such as ernie:text."
            )


class _DialogueTurns(NamedTuple):
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


def _dialogue_turns(shard: Shard, fewest: int) -> _DialogueTurns:
    """The conversations of a shard that have enough turns."""
    turns, border = shard.turns, shard.documents
    home = np.searchsorted(border, turns, side="right") - 1
    count = np.bincount(home, minlength=len(border) - 1)
    end = np.minimum(np.append(turns[1:], len(shard.ids))[: len(turns)], border[home + 1])
    kept = count[home] >= fewest
    reply = (np.asarray(shard.units[turns]) & UnitFlag.REPLY) != 0
    role = np.where(reply, REPLY, QUERY).astype(np.uint8)
    first = offsets(count[count >= fewest])
    return _DialogueTurns(turns[kept] + shard.base, (end - turns)[kept], role[kept], first)


class _TurnRowSampler:
    """One pass over the conversations of all shards."""

    def __init__(self, how: Dialogues, shards: Sequence[_DialogueTurns], length: int, key: Key) -> None:
        self.config, self.shards, self.length, self.key = how, shards, length, key
        self.last: list[int] = np.cumsum([len(talks.first) - 1 for talks in shards]).tolist()
        # Every turn keeps at least one token and its [SEP]; a row of 8 tokens has room for 3 of them.
        self.max_turns = min(how.max_turns, (length - 1) // 2)

    def rows(self) -> Iterator[_Row]:
        """The rows of all conversations, in their order."""
        for number, talks in enumerate(self.shards):
            turns = np.arange(len(talks.start))
            draws = self.key.fold_in("dialogues", number).fold_in(turns).bits(DrawPurpose.PLAN, _DRAWS)
            before = self.last[number] - (len(talks.first) - 1)
            for index, (first, last) in enumerate(itertools.pairwise(talks.first.tolist())):
                while first < last:
                    draw = draws[first].tolist()
                    begin, end = self._window(talks, first, last, draw[0])
                    yield self._row(talks, begin, end, before + index, draw)
                    first = end

    def _window(self, talks: _DialogueTurns, first: int, last: int, draw: int) -> tuple[int, int]:
        """The turns of the row that begins at `first`: as many whole ones as were drawn and fit, but not too few."""
        fewest = min(self.config.min_turns, self.max_turns)
        end = min(first + fewest + draw * (self.max_turns - fewest + 1) // 2**64, last)
        begin = min(first, end - fewest)
        while end - begin > fewest and int(talks.size[begin:end].sum()) > CLS_SEP.text_budget(self.length, end - begin):
            end -= 1
        return begin, end

    def _row(self, talks: _DialogueTurns, begin: int, end: int, own: int, draw: list[int]) -> _Row:
        start, size = talks.start[begin:end].tolist(), talks.size[begin:end].tolist()
        fake = draw[1] / _UNIT < self.config.fake_fraction
        if fake:
            place = draw[2] * len(start) // 2**64
            start[place], size[place] = self._sample_other_turn(own, draw)
        most = _max_turn_length(size, CLS_SEP.text_budget(self.length, len(size)))
        return _Row(start, [min(one, most) for one in size], talks.role[begin:end].tolist(), int(fake))

    def _sample_other_turn(self, own: int, draw: list[int]) -> tuple[int, int]:
        """A turn of another conversation: any of them with equal chances, and any of its turns."""
        other = draw[3] * (self.last[-1] - 1) // 2**64
        other += other >= own
        number = int(np.searchsorted(self.last, other, side="right"))
        talks = self.shards[number]
        local = other - (self.last[number] - (len(talks.first) - 1))
        first, last = talks.first[local : local + 2].tolist()
        turn = first + draw[4] * (last - first) // 2**64
        return int(talks.start[turn]), int(talks.size[turn])


def _max_turn_length(sizes: Sequence[int], room: int) -> int:
    """The length to which turns must be cut so that all fit; the longest of them if they do."""
    for left, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size > room // left:
            return room // left
        room -= size
    return max(sizes)


def _to_array(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.int64) if values else np.zeros(0, dtype=np.int64)
