"""Which row is read when: the position in training is one integer, and everything else follows from it.

What arrives: visit numbers (step times batch plus place). What leaves: the row to read and the number of its renewal.
What never happens here: a list of shuffled rows. Each pass is a keyed permutation, computed for the rows asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.errors import RecipeError
from unmask.keys import Key, permute
from unmask.records import Ints


@dataclass(frozen=True, slots=True)
class EveryVisit:
    """Draw anew each time a row is read: dynamic masking (RoBERTa)."""

    def renewal(self, visit: Ints) -> Ints:
        """The number of the draw is the number of the visit."""
        return visit


@dataclass(frozen=True, slots=True)
class Copies:
    """Draw `count` times and then repeat: static masking (BERT froze 10 copies of its data)."""

    count: int = 10

    def __post_init__(self) -> None:
        if self.count < 1:
            raise RecipeError(f"Static masking needs at least 1 copy, found {self.count}.")

    def renewal(self, visit: Ints) -> Ints:
        """Visit 10 sees the draw of visit 0 again."""
        return visit % self.count


Renew = EveryVisit | Copies


@dataclass(frozen=True, slots=True)
class Visits:
    """The order in which the rows of a plan are read, pass after pass."""

    rows: int
    renew: Renew
    key: Key

    def __call__(self, number: Ints) -> tuple[Ints, Key]:
        """The rows of these visits, and the key under which each is corrupted."""
        passes, place = np.divmod(number, self.rows)
        row = np.empty_like(place)
        for one in np.unique(passes):
            here = passes == one
            row[here] = permute(place[here], self.rows, self.key.fold("order", int(one)))
        return row, self.at(row, passes)

    def at(self, row: Ints, visit: Ints) -> Key:
        """The key of a row at one of its visits."""
        renewal = self.renew.renewal(visit)
        return Key(self.key.fold("draw").fold(renewal).fold(row).state)
