"""Rows of two segments: next-sentence and sentence-order prediction (BERT, ALBERT), by BERT's released procedure.

What arrives: a corpus, a row length and a key. What leaves: a plan of rows `[CLS] A [SEP] B [SEP]` with facts.
What never happens here: a random B from A's own document, or a swapped pair that was not adjacent.

Sentences are gathered until the target length is reached (one row in ten aims at a shorter one), cut into A and B after
a drawn sentence, and B is kept, swapped with A or replaced by text from another document. Sentences that a random B
leaves unused go back into the stream. Too long a pair loses tokens one at a time from its longer side, at the front or
at the back. Every draw is addressed by the sentence with which a row begins.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from unmask.errors import RecipeError
from unmask.examples.plan import Frame, Plan
from unmask.examples.stretches import sentences
from unmask.keys import Key, Lane
from unmask.records import Flag, Ints
from unmask.shards.corpus import Corpus

_DRAWS = 14
_FRONT = 6
_UNIT = float(2**64)


class Negative(StrEnum):
    """What the second segment may be besides the true continuation, and the fact that the row then states."""

    RANDOM = "random"
    """Text from another document (NSP). Fact `next`: 0 B follows A, 1 B is random."""
    SWAPPED = "swapped"
    """The true pair in the wrong order (SOP). Fact `order`: 0 in order, 1 swapped."""
    BOTH = "both"
    """Either, a third each. Fact `pair`: 0 in order, 1 swapped, 2 random."""


class Grain(StrEnum):
    """What a segment is made of."""

    SEGMENT = "segment"
    """As many sentences as fit: SEGMENT-PAIR."""
    SENTENCE = "sentence"
    """One sentence each: SENTENCE-PAIR."""


_FACT = {Negative.RANDOM: "next", Negative.SWAPPED: "order", Negative.BOTH: "pair"}
_TRUE, _SWAP, _OTHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two segments, of which the second may not be the continuation of the first."""

    negative: Negative = Negative.RANDOM
    grain: Grain = Grain.SEGMENT
    short: float = 0.1
    """The share of rows that aim at a shorter length, so that short inputs are seen too (BERT's short_seq_prob)."""

    def __post_init__(self) -> None:
        if not 0 <= self.short <= 1:
            raise RecipeError(f"Pairs needs a share of short rows between 0 and 1, found {self.short}.")

    apart: ClassVar[bool] = False
    segments: ClassVar[int] = 2

    @property
    def gives(self) -> frozenset[str]:
        """The one fact that its negatives call for."""
        return frozenset({_FACT[self.negative]})

    @property
    def frame(self) -> Frame:
        """`[CLS] A [SEP] B [SEP]`."""
        return Frame()

    def plan(self, corpus: Corpus, length: int, key: Key) -> Plan:
        """Walk all documents once and draw the pairs."""
        if corpus.manifest.counts.documents < 2 and self.negative is not Negative.SWAPPED:
            raise RecipeError(
                "Pairs with a random second segment need at least two documents, but this corpus has one. "
                "Separate documents by blank lines, or use swapped pairs (sentence order)."
            )
        room = Frame().room(length, 2)
        walk = _Walk(self, corpus, room, key)
        found = array("q")
        for shard in range(len(corpus.shards)):
            for pair in walk.shard(shard):
                found.extend(pair)
        table = np.frombuffer(found, dtype=np.int64).reshape(-1, 5) if found else np.zeros((0, 5), dtype=np.int64)
        count = len(table)
        return Plan(
            start=table[:, (0, 2)].reshape(-1),
            length=table[:, (1, 3)].reshape(-1).astype(np.int32),
            segment=np.tile(np.array([0, 1], dtype=np.uint8), count),
            document=np.zeros(2 * count, dtype=np.uint16),
            rows=np.arange(0, 2 * count + 1, 2),
            facts=MappingProxyType({_FACT[self.negative]: table[:, 4].astype(np.int8)}),
        )


class _Walk:
    """One pass over the sentences of all shards."""

    def __init__(self, pairs: Pairs, corpus: Corpus, room: int, key: Key) -> None:
        self.pairs, self.corpus, self.room, self.key = pairs, corpus, room, key
        shards = list(sentences(corpus, room))
        self.border = [_numbers(found.border) for found in shards]
        self.document = [_numbers(found.document) for found in shards]
        self.last = np.cumsum([len(document) - 1 for document in self.document]).tolist()

    def shard(self, number: int) -> Iterator[tuple[int, int, int, int, int]]:
        """The pairs of one shard: (start of A, length, start of B, length, fact)."""
        border, document = self.border[number], self.document[number]
        base = self.key.fold("pairs", number)
        draws = base.fold(np.arange(len(border))).draws(Lane.PLAN, _DRAWS)
        before = self.last[number] - (len(document) - 1)
        for index, (first, last) in enumerate(itertools.pairwise(document)):
            while first < last:
                pair, first = self._pair(border, first, last, before + index, draws[first].tolist())
                if pair is not None:
                    yield pair

    def _pair(
        self, border: array[int], first: int, last: int, document: int, draw: list[int]
    ) -> tuple[tuple[int, int, int, int, int] | None, int]:
        """One row that begins with sentence `first`, and the sentence with which the next row begins."""
        target = self.room
        if draw[0] / _UNIT < self.pairs.short:
            target = 2 + draw[1] * (self.room - 1) // 2**64
        if self.pairs.grain is Grain.SENTENCE:
            end = min(first + 2, last)
        else:
            end = min(max(bisect_left(border, border[first] + target), first + 1), last)
        middle = first + 1 + draw[2] * (end - first - 1) // 2**64 if end - first > 1 else end
        kind = self._kind(draw[3] / _UNIT, single=middle == end)
        if kind == _OTHER:
            other = self._other(document, target - (border[middle] - border[first]), draw)
            return self._fit((border[first], border[middle]), other, self._fact(kind), draw), middle
        if middle == end:
            half = self._middle_word(border[first], border[end])
            if half == border[first]:
                return None, end
            parts = (border[first], half), (half, border[end])
        else:
            parts = (border[first], border[middle]), (border[middle], border[end])
        return self._fit(*(parts if kind == _TRUE else parts[::-1]), self._fact(kind), draw), end

    def _kind(self, uniform: float, single: bool) -> int:
        """What B is. A lone sentence has no continuation: under NSP its B is always random, as BERT does it."""
        match self.pairs.negative:
            case Negative.RANDOM:
                return _OTHER if single or uniform < 0.5 else _TRUE
            case Negative.SWAPPED:
                return _SWAP if uniform < 0.5 else _TRUE
            case Negative.BOTH:
                return _OTHER if single or uniform < 1 / 3 else _SWAP if uniform < 2 / 3 else _TRUE

    def _middle_word(self, start: int, end: int) -> int:
        """Where the word begins that is nearest to the middle of a lone sentence; its start if it is one word."""
        shard = self.corpus.shards[int(np.searchsorted(self.corpus.bases, start, side="right")) - 1]
        words = start + np.flatnonzero(shard.units[start - shard.base : end - shard.base] & Flag.WORD)
        later = words[words > start]
        return int(later[np.abs(2 * later - start - end).argmin()]) if len(later) else start

    def _fact(self, kind: int) -> int:
        return int(kind != _TRUE) if self.pairs.negative is Negative.RANDOM else kind

    def _other(self, document: int, wanted: int, draw: list[int]) -> tuple[int, int]:
        """Text from another document, from a random sentence on: any document but this one, with equal chances."""
        other = draw[4] * (self.last[-1] - 1) // 2**64
        other += other >= document
        shard = bisect_right(self.last, other)
        local = other - (self.last[shard] - (len(self.document[shard]) - 1))
        border = self.border[shard]
        first, last = self.document[shard][local], self.document[shard][local + 1]
        begin = first + draw[5] * (last - first) // 2**64
        if self.pairs.grain is Grain.SENTENCE:
            return border[begin], border[begin + 1]
        end = bisect_left(border, border[begin] + max(wanted, 1), begin + 1, last + 1)
        return border[begin], border[min(end, last)]

    def _fit(
        self, a: tuple[int, int], b: tuple[int, int], fact: int, draw: list[int]
    ) -> tuple[int, int, int, int, int]:
        """Cut both to the room: always from the longer one, each token from the front or the back by a coin."""
        size_a, size_b = a[1] - a[0], b[1] - b[0]
        excess = max(0, size_a + size_b - self.room)
        cut_a, cut_b = _shares(size_a, size_b, excess)
        front_a = _heads(draw[_FRONT : _FRONT + 4], cut_a)
        front_b = _heads(draw[_FRONT + 4 :], cut_b)
        return a[0] + front_a, size_a - cut_a, b[0] + front_b, size_b - cut_b, fact


def _numbers(values: Ints) -> array[int]:
    """Plain numbers in 8 bytes each: a list would take five times as much."""
    numbers = array("q")
    numbers.frombytes(values.astype(np.int64).tobytes())
    return numbers


def _shares(size_a: int, size_b: int, excess: int) -> tuple[int, int]:
    """How many tokens each side loses when the longer side (B, if equal) loses one, `excess` times."""
    level = max(0, min(excess, abs(size_a - size_b)))
    rest = excess - level
    longer = level + rest // 2
    if size_a > size_b:
        return longer, rest // 2 + rest % 2
    return rest // 2, level + rest // 2 + rest % 2


def _heads(words: list[int], coins: int) -> int:
    """How many of so many coins show heads: the bits of random words. Beyond 256 coins, the expected number."""
    known = min(coins, 64 * len(words))
    bits = sum(word << (64 * i) for i, word in enumerate(words))
    return (bits & ((1 << known) - 1)).bit_count() + (coins - known) // 2
