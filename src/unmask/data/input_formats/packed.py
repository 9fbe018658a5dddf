"""Packing: rows of running text, filled to the row length (RoBERTa's FULL-SENTENCES and DOC-SENTENCES).

No text is left out, and no row is cut inside a word unless one word is longer than a row.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from unmask.core.records import UnitFlag
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.input_formats.row_plan import CLS_SEP, RowPlan, SpecialTokenTemplate
from unmask.data.input_formats.sentence_index import SentenceIndex, sentence_index

MIN_PIECE_TOKENS = 8
"""A piece of a packed row has at least so many tokens, if its document has."""


class DocumentBoundary(StrEnum):
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

    join: DocumentBoundary = DocumentBoundary.ACROSS
    template: SpecialTokenTemplate = CLS_SEP
    """The end token stands after each document, or after the part of it that is in the row."""
    num_streams: ClassVar[int] = 0
    num_segments: ClassVar[int] = 1

    @property
    def row_facts(self) -> frozenset[str]:
        """No facts: there is one segment only."""
        return frozenset()

    @property
    def isolate_documents(self) -> bool:
        """Only where borders are kept."""
        return self.join is DocumentBoundary.BORDERS

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Fill rows from the first document to the last; nothing is drawn."""
        filler = _Filler(length, self.join, self.template)
        if self.isolate_documents:
            for shard in corpus.shards:
                filler.stream(shard)
        else:
            for found in sentence_index(corpus, self.template.text_budget(length, 1)):
                filler.sentences(found)
        filler.close()
        return filler.plan()


class _Filler:
    """Rows being filled, one document after another."""

    def __init__(self, length: int, join: DocumentBoundary, template: SpecialTokenTemplate) -> None:
        self.row_length, self.join, self.template = length, join, template
        self.num_free, self.part = length, 0
        self.start: list[int] = []
        self.length: list[int] = []
        self.document: list[int] = []
        self.rows: list[int] = [0]

    def sentences(self, found: SentenceIndex) -> None:
        """Lay the documents of a shard into rows, whole sentences at a time."""
        border, document = found.offsets.tolist(), found.document_offsets.tolist()
        for first, last in itertools.pairwise(document):
            while first < last:
                upto = min(bisect_right(border, border[first] + self.num_free - self._num_special_tokens()) - 1, last)
                if upto > first:
                    self._piece(border[first], border[upto] - border[first])
                if upto < last:
                    self.close()
                first = max(first, upto)
            if self.join is DocumentBoundary.NEVER:
                self.close()

    def stream(self, shard: Shard) -> None:
        """Lay the documents of a shard into rows, each row as full as word borders allow."""
        for start, end in zip(shard.documents[:-1].tolist(), shard.documents[1:].tolist(), strict=True):
            while start < end:
                room = self.num_free - self._num_special_tokens()
                if self.num_free < self.row_length and room < min(MIN_PIECE_TOKENS, end - start):
                    self.close()
                    continue
                stop = _last_word_start(shard, start, start + room) if end - start > room else end
                self._piece(shard.base + start, stop - start)
                start = stop

    def close(self) -> None:
        """Begin a new row."""
        if self.num_free < self.row_length:
            self.rows.append(len(self.start))
        self.num_free, self.part = self.row_length, 0

    def plan(self) -> RowPlan:
        """The finished table."""
        start = np.array(self.start, dtype=np.int64)
        document = np.array(self.document, dtype=np.uint16)
        segment = np.zeros(len(start), dtype=np.uint8)
        return RowPlan(
            start, np.array(self.length, dtype=np.int32), segment, document, np.array(self.rows, dtype=np.int64)
        )

    def _num_special_tokens(self) -> int:
        """The special tokens that one more piece needs: its end token, and a start token in a new row or document."""
        opens = self.num_free == self.row_length or self.join is DocumentBoundary.BORDERS
        return self.template.num_end + self.template.num_start * opens

    def _piece(self, start: int, length: int) -> None:
        self.num_free -= length + self._num_special_tokens()
        self.start.append(start)
        self.length.append(length)
        self.document.append(self.part)
        self.part += self.join is DocumentBoundary.BORDERS


def _last_word_start(shard: Shard, start: int, stop: int) -> int:
    """The last place up to `stop` at which a word begins; `stop` itself where one word fills the whole stretch."""
    for reach in (32, stop - start - 1):
        low = max(start + 1, stop - reach)
        words = np.flatnonzero(np.asarray(shard.units[low : stop + 1]) & UnitFlag.WORD)
        if len(words):
            return low + int(words[-1])
    return stop
