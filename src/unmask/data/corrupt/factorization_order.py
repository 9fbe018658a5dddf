"""Factorization order (XLNet, Yang et al., 2019): the text is unchanged; the order of prediction is drawn.

No token moves or is masked; the attention pattern hides the answers (`attention_pattern.py`). Targets are short spans,
each inside a block of context: blocks are adjacent from the start of the row, and a block of n / share tokens holds a
span of n of them, so targets are spread evenly. The free tokens of a row count as one sequence. The part of the budget
that blocks do not fill is filled with single tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges
from unmask.core.records import Bools, Ids, InputsAndTargets, Ints, PermutedTarget, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key, categorical, randint
from unmask.data.corrupt.row_ops import free_tokens, sample_cells, shuffle, valid_mask
from unmask.data.input_formats.row_plan import inputs_like, row_class_targets
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class PermutationOrder:
    """Predict `share` of the free tokens of each row, rounded, at least one, in a random order.

    Spans have 1 to `longest` tokens; the probability of length n is proportional to 1 / n. Targets have the ranks 0, 1,
    2, ... of their row; all other tokens have rank -1, are visible to all and attend to no target.
    """

    target_fraction: float = 1 / 6
    max_span: int = 5
    target_types: ClassVar[tuple[type[Target], ...]] = (PermutedTarget,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def __post_init__(self) -> None:
        if not 0 < self.target_fraction <= 1:
            raise RecipeError(f"Order needs a share above 0 and up to 1, found {self.target_fraction}; XLNet uses 1/6.")
        if self.max_span < 1:
            raise RecipeError(f"Order needs spans of at least 1 token, found {self.max_span}; XLNet uses up to 5.")

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Draw the targets of every row and their order."""
        free, rows = free_tokens(example)
        size = np.diff(rows)
        goal = np.minimum(np.maximum(np.rint(size * self.target_fraction).astype(np.int64), 1), size)
        real = valid_mask(size)
        chosen = self._blocks(size, real, key)
        chosen |= sample_cells(key.bits(DrawPurpose.SELECT, real.shape[1]), real & ~chosen, goal - chosen.sum(axis=1))
        positions = free[chosen[real]]
        rank = np.full(len(example.ids), -1, dtype=np.int32)
        rank[positions] = _ranks(goal, key)
        target = PermutedTarget(rank, positions, example.ids[positions])
        return InputsAndTargets(inputs_like(example, example.ids), (target, *row_class_targets(example)))

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows: the answers put at their positions."""
        target = instance.targets[0]
        assert isinstance(target, PermutedTarget)
        ids = instance.inputs.ids.copy()
        ids[target.positions] = target.answers
        return ids, instance.inputs.rows

    def _blocks(self, size: Ints, real: Bools, key: Key) -> Bools:
        """The free tokens (padded layout) in the spans of blocks. A block that does not fit any more is left out."""
        number = np.arange(1, self.max_span + 1)
        # Rounded up, so that whole blocks never hold more targets than their share; 5 / (1 / 6) must not give 31.
        block = np.ceil(number / self.target_fraction - 1e-9).astype(np.int64)
        count = max(1, real.shape[1] // int(block[0]))
        drawn = categorical(key.bits(DrawPurpose.LENGTH, count), 1 / number)
        lengths, context = number[drawn], block[drawn]
        ends = np.cumsum(context, axis=1)
        starts = ends - context + randint(key.bits(DrawPurpose.PLACE, count), context - lengths + 1)
        row, fits = np.nonzero(ends <= size[:, None])
        chosen = np.zeros(real.shape, dtype=np.bool_)
        chosen.reshape(-1)[concat_ranges(row * real.shape[1] + starts[row, fits], lengths[row, fits])] = True
        return chosen


def _ranks(counts: Ints, key: Key) -> Ids:
    """A random order of the targets of each row, flat: the rank of every target."""
    real = valid_mask(counts)
    ranks = np.empty(real.shape, dtype=np.int32)
    order = shuffle(key.bits(DrawPurpose.ORDER, real.shape[1]), real)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(real.shape[1], dtype=np.int32), real.shape), axis=1)
    return ranks[real]
