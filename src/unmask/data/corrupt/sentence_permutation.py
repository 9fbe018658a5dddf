"""Sentence permutation (BART, Lewis et al., 2019): the sentences of a row in a random order.

Special tokens do not move, and sentences stay between them: segments of a pair and documents of a packed row are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.ragged import concat_ranges
from unmask.core.records import DecoderTarget, Ids, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corrupt.compose import denoising_target, original_rows
from unmask.data.corrupt.row_ops import gather_tokens, mark_borders, segment_starts, unit_starts
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class PermuteSentences:
    """Put the sentences of each segment into a random order; every order, the original included, is equally likely."""

    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """Sentences."""
        return frozenset({UnitKind.SENTENCE})

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The rows with their sentences moved."""
        starts = np.flatnonzero(unit_starts(example, UnitKind.SENTENCE))
        lengths = np.diff(starts, append=len(example.ids))
        stretch = np.cumsum(segment_starts(example), dtype=np.int32)[starts]
        words = key.bits_per_token(DrawPurpose.ORDER, np.searchsorted(starts, example.rows))
        order = np.lexsort((words, stretch))
        # A piece of a sentence cut off by the row's edge would melt into its new neighbour, so it is marked as well.
        return gather_tokens(mark_borders(example, starts), concat_ranges(starts[order], lengths[order]), example.rows)

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Permute every row; the target is the original row."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)
