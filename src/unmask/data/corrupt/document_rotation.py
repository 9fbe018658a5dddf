"""Document rotation (BART, Lewis et al., 2019): the text begins at a random token; the model finds its start.

Special tokens do not move. In a row with several segments or documents, each one is rotated in its own place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.ragged import concat_ranges
from unmask.core.records import DecoderTarget, Ids, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key, randint
from unmask.data.corrupt.compose import denoising_target, original_rows
from unmask.data.corrupt.row_ops import gather_tokens, mark_borders, segment_starts
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class DocumentRotation:
    """Rotate each stretch so that a token drawn uniformly from it comes first."""

    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The rows rotated: in each segment, the tokens before the drawn token move after the others."""
        starts = np.flatnonzero(segment_starts(example))
        lengths = np.diff(starts, append=len(example.ids))
        before = randint(key.bits_per_token(DrawPurpose.PLACE, np.searchsorted(starts, example.rows)), lengths)
        first = starts + before
        source = concat_ranges(np.stack([first, starts], 1).ravel(), np.stack([lengths - before, before], 1).ravel())
        return gather_tokens(mark_borders(mark_borders(example, starts), first), source, example.rows)

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Rotate every row; the target is the original row."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)
