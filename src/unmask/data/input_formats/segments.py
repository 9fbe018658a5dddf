"""Rows of one or two segments of running text, `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, without facts (ELECTRA).

B follows A, and a row ends with its document. Sentences are gathered until the target length is reached (one row in
twenty has a shorter one). They fill A up to about a half; the sentence that would exceed it is assigned by a coin, and
the rest is B. One row in ten is all A. Excess tokens are cut at the end. Draws are keyed by the row's first sentence.

Two departures from the released code: there a short sentence may still go to A when B has begun, which takes the text
apart, and a sentence longer than a row loses its end; here it is cut between words and goes on in the next row.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Ints
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import CLS_SEP, RowPlan, SpecialTokenTemplate
from unmask.data.input_formats.sentence_index import SentenceIndex, sentence_index

_DRAWS = 4
_UNIT = float(2**64)
_SHORTEST = 5
"""The shortest length that a row aims at."""


@dataclass(frozen=True, slots=True)
class OneOrTwoSegments:
    """One or two segments that follow each other."""

    single_fraction: float = 0.1
    """The share of rows that have one segment, as in the classification of single sentences."""
    short_fraction: float = 0.05
    """The share of rows that aim at a shorter length."""
    template: ClassVar[SpecialTokenTemplate] = CLS_SEP
    isolate_documents: ClassVar[bool] = False
    num_streams: ClassVar[int] = 0
    num_segments: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not (0 <= self.single_fraction <= 1 and 0 <= self.short_fraction <= 1):
            raise RecipeError(
                f"Segments needs shares of single and of short rows between 0 and 1, found {self.single_fraction} and "
                f"{self.short_fraction}."
            )

    @property
    def row_facts(self) -> frozenset[str]:
        """No facts: B always follows A."""
        return frozenset()

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Walk all documents once and draw where rows and segments end."""
        found = array("q")  # a list would take five times as much
        for number, shard in enumerate(sentence_index(corpus, CLS_SEP.text_budget(length, 1))):
            for row in self._rows(shard, length, key.fold_in("segments", number)):
                found.extend(row)
        table: Ints = np.array(found, dtype=np.int64).reshape(-1, 3)
        start, middle, end = table.T
        kept = np.stack([np.ones_like(start), end - middle], axis=1).reshape(-1) > 0
        rows = np.append(0, np.cumsum(1 + (end > middle)))
        return RowPlan(
            start=np.stack([start, middle], axis=1).reshape(-1)[kept],
            length=np.stack([middle - start, end - middle], axis=1).reshape(-1)[kept].astype(np.int32),
            segment=np.tile(np.array([0, 1], dtype=np.uint8), len(table))[kept],
            document=np.zeros(int(rows[-1]), dtype=np.uint16),
            rows=rows,
        )

    def _rows(self, shard: SentenceIndex, length: int, key: Key) -> Iterator[tuple[int, int, int]]:
        """The rows of a shard: where A begins, where B begins, and where B ends; B may be empty."""
        border = shard.offsets.tolist()
        draws = key.fold_in(np.arange(len(border))).bits(DrawPurpose.PLAN, _DRAWS)
        for first, last in itertools.pairwise(shard.document_offsets.tolist()):
            while first < last:
                draw = draws[first].tolist()
                target = length
                if draw[0] / _UNIT < self.short_fraction:
                    target = _SHORTEST + draw[1] * (length - _SHORTEST + 1) // 2**64
                end = min(max(bisect_left(border, border[first] + target), first + 1), last)
                middle = end if draw[2] / _UNIT < self.single_fraction else _middle(border, first, end, target, draw[3])
                yield _truncate(border[first], border[middle], border[end], length)
                first = end


def _middle(border: list[int], first: int, end: int, target: int, coin: int) -> int:
    """The sentence with which B begins: the one that would overflow half of the target, or the next, by a coin."""
    half = border[first] + CLS_SEP.text_budget(target, 2) // 2
    over = max(bisect_left(border, half) - 1, first + 1)
    if border[over] < half and coin < 2**63:
        over += 1
    return min(over, end)


def _truncate(start: int, middle: int, end: int, length: int) -> tuple[int, int, int]:
    """Cut off what a row has no room for, at its end. A second segment costs one more [SEP]."""
    middle = min(middle, start + CLS_SEP.text_budget(length, 1))
    return start, middle, max(middle, min(end, start + CLS_SEP.text_budget(length, 2)))
