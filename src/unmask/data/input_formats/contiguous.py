"""Contiguous streams: the corpus as parallel streams, read in order (Transformer-XL, XLNet, recurrent networks).

Row `t * num_streams + b` of the plan is the t-th segment of stream b. With one row of each stream in a step, row b of
every batch continues row b of the batch before. A network with memory carries its states along a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import NO_SPECIAL_TOKENS, RowPlan, SpecialTokenTemplate


@dataclass(frozen=True, slots=True)
class ContiguousStreams:
    """The corpus cut into equal streams, each read from its beginning to its end, epoch after epoch."""

    num_streams: int = 32

    def __post_init__(self) -> None:
        if self.num_streams < 1:
            raise RecipeError(f"ContiguousStreams needs at least 1 stream, found {self.num_streams}.")

    template: ClassVar[SpecialTokenTemplate] = NO_SPECIAL_TOKENS
    isolate_documents: ClassVar[bool] = False
    num_segments: ClassVar[int] = 1

    def for_evaluation(self, corpus: Corpus, length: int) -> ContiguousStreams:
        """The same format with as few streams as held-out text allows."""
        return ContiguousStreams(min(max(corpus.manifest.counts.tokens // length // 4, 1), self.num_streams))

    @property
    def row_facts(self) -> frozenset[str]:
        """No facts."""
        return frozenset()

    def check(self, corpus: Corpus, length: int) -> None:
        """Refuse a corpus that has no row for every stream."""
        if corpus.manifest.counts.tokens < self.num_streams * length:
            raise RecipeError(
                f"{self.num_streams} streams of rows of {length} tokens need {self.num_streams * length:,} tokens, but "
                f"the corpus has {corpus.manifest.counts.tokens:,}. Use fewer streams, shorter rows or more text."
            )

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Equal streams; the end of the corpus that does not fill a row of every stream is left out.

        A corpus with fewer rows than streams has as many streams as rows, and one that fills no row is one row.
        """
        tokens = corpus.manifest.counts.tokens
        length = min(length, tokens)
        streams = min(self.num_streams, tokens // max(length, 1))
        steps = tokens // max(streams * length, 1)
        step, stream = np.divmod(np.arange(steps * streams), max(streams, 1))
        start = corpus.bases[0] + (stream * steps + step) * length
        inner = corpus.bases[1:-1]
        first = np.searchsorted(inner, start, side="right")
        last = np.searchsorted(inner, start + length - 1, side="right")
        return _split(start, length, corpus.bases, first, last, step > 0)


def _split(
    start: np.ndarray, length: int, bases: np.ndarray, first: np.ndarray, last: np.ndarray, continues: np.ndarray
) -> RowPlan:
    """Pieces of rows; a row that reaches into the next shard has one piece in each."""
    count = last - first + 1
    row = np.repeat(np.arange(len(start)), count)
    offset = np.append(0, np.cumsum(count))
    shard = first[row] + np.arange(len(row)) - offset[row]
    begin = np.maximum(start[row], bases[shard])
    end = np.minimum(start[row] + length, bases[shard + 1])
    keep = begin < end
    rows = np.append(0, np.cumsum(np.add.reduceat(keep, offset[:-1], dtype=np.int64)))
    begin, end = begin[keep], end[keep]
    zeros = np.zeros(len(begin))
    return RowPlan(
        begin,
        (end - begin).astype(np.int32),
        zeros.astype(np.uint8),
        zeros.astype(np.uint16),
        rows,
        continues_previous=continues,
    )
