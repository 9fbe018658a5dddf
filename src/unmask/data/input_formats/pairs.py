"""Rows of two segments: next-sentence and sentence-order prediction (BERT, ALBERT), by BERT's released procedure.

Rows are `[CLS] A [SEP] B [SEP]`. Sentences are gathered until the target length is reached (one row in ten has a
shorter one), cut into A and B after a drawn sentence, and B is kept, swapped with A or replaced by text from another
document. Sentences that a random B leaves unused return to the stream. A pair that is too long loses tokens one at a
time from its longer side, at the front or at the back. Every draw is keyed by the first sentence of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.pair_sampler import TRUE, PairProbabilities, sample_pairs
from unmask.data.input_formats.row_plan import CLS_SEP, RowPlan, SpecialTokenTemplate
from unmask.data.input_formats.sentence_index import sentence_index


class Negative(StrEnum):
    """What the second segment may be besides the true continuation, and the fact that the row then states."""

    RANDOM = "random"
    """Text from another document (NSP). Fact `next`: 0 B follows A, 1 B is random."""
    SWAPPED = "swapped"
    """The true pair in the wrong order (SOP). Fact `order`: 0 in order, 1 swapped."""
    BOTH = "both"
    """Either, a third each. Fact `pair`: 0 in order, 1 swapped, 2 random."""


class SegmentGrain(StrEnum):
    """What a segment is made of."""

    SEGMENT = "segment"
    """As many sentences as fit: SEGMENT-PAIR."""
    SENTENCE = "sentence"
    """One sentence each: SENTENCE-PAIR."""


_FACT = {Negative.RANDOM: "next", Negative.SWAPPED: "order", Negative.BOTH: "pair"}
_EDGES = {Negative.RANDOM: (1 / 2, 1 / 2), Negative.SWAPPED: (0.0, 1 / 2), Negative.BOTH: (1 / 3, 2 / 3)}
"""Up to where a uniform number means text from another document, and up to where a swapped pair."""


@dataclass(frozen=True, slots=True)
class SegmentPairs:
    """Two segments, of which the second may not be the continuation of the first."""

    negative: Negative = Negative.RANDOM
    grain: SegmentGrain = SegmentGrain.SEGMENT
    short_fraction: float = 0.1
    """The share of rows that aim at a shorter length, so that short inputs are seen too (BERT's short_seq_prob)."""

    def __post_init__(self) -> None:
        if not 0 <= self.short_fraction <= 1:
            raise RecipeError(f"Pairs needs a share of short rows between 0 and 1, found {self.short_fraction}.")

    template: ClassVar[SpecialTokenTemplate] = CLS_SEP
    isolate_documents: ClassVar[bool] = False
    num_streams: ClassVar[int] = 0
    num_segments: ClassVar[int] = 2

    @property
    def row_facts(self) -> frozenset[str]:
        """The one fact that its negatives call for."""
        return frozenset({_FACT[self.negative]})

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Walk all documents once and draw the pairs."""
        if corpus.manifest.counts.documents < 2 and self.negative is not Negative.SWAPPED:
            raise RecipeError(
                "Pairs with a random second segment need at least two documents, but this corpus has one. "
                "Separate documents by blank lines, or use swapped pairs (sentence order)."
            )
        room = CLS_SEP.text_budget(length, 2)
        chances = PairProbabilities(*_EDGES[self.negative], self.short_fraction, self.grain is SegmentGrain.SENTENCE)
        found = list(sentence_index(corpus, room))
        table = np.concatenate([np.zeros((0, 5), dtype=np.int64), *sample_pairs(corpus, found, room, chances, key)])
        kind = table[:, 4]
        fact = kind != TRUE if self.negative is Negative.RANDOM else kind
        count = len(table)
        return RowPlan(
            start=table[:, (0, 2)].reshape(-1),
            length=table[:, (1, 3)].reshape(-1).astype(np.int32),
            segment=np.tile(np.array([0, 1], dtype=np.uint8), count),
            document=np.zeros(2 * count, dtype=np.uint16),
            rows=np.arange(0, 2 * count + 1, 2),
            facts=MappingProxyType({_FACT[self.negative]: fact.astype(np.int8)}),
        )
