"""Document rotation (BART, Lewis et al., 2019): the text begins at a random token, and the model must find its start.

What arrives: an `Example`. What leaves: rows of the same length, rotated, and the original rows as a `Rewrite`.
What never happens here: a special token that moves. A row with several stretches (the segments of a pair, the documents
of a packed row) has each of them rotated in its own place.
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
        """The rows rotated: in each stretch, what precedes the drawn token changes places with what follows."""
        starts = np.flatnonzero(segment_starts(example))
        lengths = np.diff(starts, append=len(example.ids))
        before = randint(key.bits_per_token(DrawPurpose.PLACE, np.searchsorted(starts, example.rows)), lengths)
        first = starts + before
        source = concat_ranges(np.stack([first, starts], 1).ravel(), np.stack([lengths - before, before], 1).ravel())
        return gather_tokens(mark_borders(mark_borders(example, starts), first), source, example.rows)

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Rotate every row and ask for it."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)
