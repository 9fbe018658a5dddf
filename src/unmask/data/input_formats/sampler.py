"""Which row is read when: the position in training is one integer, and everything else follows from it.

What arrives: visit numbers (step times batch plus place). What leaves: the row to read and the number of its renewal.
What never happens here: a list of shuffled rows. Each pass is a keyed permutation, computed for the rows asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Ints
from unmask.core.rng import Key, permuted_index


@dataclass(frozen=True, slots=True)
class DynamicMasking:
    """Draw anew each time a row is read: dynamic masking (RoBERTa)."""

    def draw_number(self, visit: Ints) -> Ints:
        """The number of the draw is the number of the visit."""
        return visit


@dataclass(frozen=True, slots=True)
class StaticMasking:
    """Draw `count` times and then repeat: static masking (BERT froze 10 copies of its data)."""

    num_copies: int = 10

    def __post_init__(self) -> None:
        if self.num_copies < 1:
            raise RecipeError(f"Static masking needs at least 1 copy, found {self.num_copies}.")

    def draw_number(self, visit: Ints) -> Ints:
        """Visit 10 sees the draw of visit 0 again."""
        return visit % self.num_copies


MaskingMode = DynamicMasking | StaticMasking


@dataclass(frozen=True, slots=True)
class EpochSampler:
    """The order in which the rows of a plan are read, pass after pass."""

    num_rows: int
    masking: MaskingMode
    key: Key
    shuffled: bool = True
    """Whether every epoch has an order of its own; else rows are read in the order of the plan."""

    def __call__(self, number: Ints) -> tuple[Ints, Key]:
        """The rows of these visits, and the key under which each is corrupted."""
        passes, place = np.divmod(number, self.num_rows)
        if not self.shuffled:
            return place, self.key_of(place, passes)
        row = np.empty_like(place)
        for one in np.unique(passes):
            here = passes == one
            row[here] = permuted_index(place[here], self.num_rows, self.key.fold_in("order", int(one)))
        return row, self.key_of(row, passes)

    def key_of(self, row: Ints, visit: Ints) -> Key:
        """The key of a row at one of its visits."""
        renewal = self.masking.draw_number(visit)
        return Key(self.key.fold_in("draw").fold_in(renewal).fold_in(row).state)
