"""Rows of running text: RoBERTa's FULL-SENTENCES and DOC-SENTENCES, and rows packed to the brim.

What arrives: a corpus and a row length. What leaves: a plan whose rows hold consecutive text.
What never happens here: text left out, or a row cut inside a word (unless one word is longer than a row).
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from unmask.examples.plan import Frame, Plan
from unmask.examples.stretches import Sentences, sentences
from unmask.keys import Key
from unmask.records import Flag
from unmask.shards.corpus import Corpus, Shard

SMALLEST = 8
"""A piece of a packed row has at least so many tokens, if its document has."""


class Join(StrEnum):
    """What a row does when its document ends."""

    ACROSS = "across"
    """It goes on with the next document after a separator, and everything sees everything: FULL-SENTENCES."""
    NEVER = "never"
    """It ends, even if it is short: DOC-SENTENCES."""
    BORDERS = "borders"
    """It goes on with the next document, which has its own [CLS] and is not seen by the others; rows are cut between
    words, not between sentences, so that they are full."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Consecutive text, filled up to the row length."""

    join: Join = Join.ACROSS
    segments: ClassVar[int] = 1

    @property
    def gives(self) -> frozenset[str]:
        """No facts: there is one segment only."""
        return frozenset()

    @property
    def apart(self) -> bool:
        """Only where borders are kept."""
        return self.join is Join.BORDERS

    @property
    def frame(self) -> Frame:
        """`[CLS] ... [SEP]`, and a further [SEP] after each document."""
        return Frame()

    def plan(self, corpus: Corpus, length: int, key: Key) -> Plan:
        """Fill rows from the first document to the last; nothing is drawn."""
        filler = _Filler(length, self.join)
        if self.apart:
            for shard in corpus.shards:
                filler.stream(shard)
        else:
            for found in sentences(corpus, self.frame.room(length, 1)):
                filler.sentences(found)
        filler.close()
        return filler.plan()


class _Filler:
    """Rows being filled, one document after another."""

    def __init__(self, length: int, join: Join) -> None:
        self.room, self.join = length, join
        self.left, self.part = length, 0
        self.start: list[int] = []
        self.length: list[int] = []
        self.document: list[int] = []
        self.rows: list[int] = [0]

    def sentences(self, found: Sentences) -> None:
        """Lay the documents of a shard into rows, whole sentences at a time."""
        border, document = found.border.tolist(), found.document.tolist()
        for first, last in itertools.pairwise(document):
            while first < last:
                upto = min(bisect_right(border, border[first] + self.left - self._cost()) - 1, last)
                if upto > first:
                    self._piece(border[first], border[upto] - border[first])
                if upto < last:
                    self.close()
                first = max(first, upto)
            if self.join is Join.NEVER:
                self.close()

    def stream(self, shard: Shard) -> None:
        """Lay the documents of a shard into rows, each row as full as word borders allow."""
        for start, end in zip(shard.documents[:-1].tolist(), shard.documents[1:].tolist(), strict=True):
            while start < end:
                room = self.left - self._cost()
                if self.left < self.room and room < min(SMALLEST, end - start):
                    self.close()
                    continue
                stop = _word_border(shard, start, start + room) if end - start > room else end
                self._piece(shard.base + start, stop - start)
                start = stop

    def close(self) -> None:
        """Begin a new row."""
        if self.left < self.room:
            self.rows.append(len(self.start))
        self.left, self.part = self.room, 0

    def plan(self) -> Plan:
        """The finished table."""
        start = np.array(self.start, dtype=np.int64)
        document = np.array(self.document, dtype=np.uint16)
        segment = np.zeros(len(start), dtype=np.uint8)
        return Plan(
            start, np.array(self.length, dtype=np.int32), segment, document, np.array(self.rows, dtype=np.int64)
        )

    def _cost(self) -> int:
        """The special tokens that one more piece needs: its [SEP], and a [CLS] for a new row or a new world."""
        return 2 if self.left == self.room or self.join is Join.BORDERS else 1

    def _piece(self, start: int, length: int) -> None:
        self.left -= length + self._cost()
        self.start.append(start)
        self.length.append(length)
        self.document.append(self.part)
        self.part += self.join is Join.BORDERS


def _word_border(shard: Shard, start: int, stop: int) -> int:
    """The last place up to `stop` at which a word begins; `stop` itself where one word fills the whole stretch."""
    for reach in (32, stop - start - 1):
        low = max(start + 1, stop - reach)
        words = np.flatnonzero(np.asarray(shard.units[low : stop + 1]) & Flag.WORD)
        if len(words):
            return low + int(words[-1])
    return stop
