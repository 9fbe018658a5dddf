"""Token deletion (BART, Lewis et al., 2019): tokens are removed without a mask; the model restores them.

Every row keeps at least one free token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import DecoderTarget, Ids, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corrupt.compose import denoising_target, original_rows
from unmask.data.corrupt.row_ops import drop_tokens, free_tokens, sample_cells, valid_mask
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class TokenDeletion:
    """Remove `rate` of the free tokens of each row: rounded, at least one, but the last one stays."""

    rate: float = 0.15
    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise RecipeError(f"Delete needs a rate between 0 and 1, found {self.rate}; 0.15 is usual.")

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The rows without the drawn tokens."""
        free, rows = free_tokens(example)
        size = np.diff(rows)
        real = valid_mask(size)
        drawn = np.maximum(np.rint(size * self.rate).astype(np.int64), 1)
        gone = sample_cells(key.bits(DrawPurpose.SELECT, real.shape[1]), real, np.clip(size - 1, 0, drawn))
        kept = np.ones(len(example.ids), dtype=np.bool_)
        kept[free[gone[real]]] = False
        return drop_tokens(example, kept)

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Delete tokens from every row; the target is the original row."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)
