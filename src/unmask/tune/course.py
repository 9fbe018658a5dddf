"""The course of a fine-tune: labelled rows in a new order every epoch, and rows to be judged by.

What arrives: encoded rows with their truths. What leaves: the lesson of any moment.
What never happens here: a shuffled list. An epoch is a keyed permutation, so any step is computed without the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.examples.visits import EveryVisit, Visits
from unmask.keys import Key
from unmask.objectives.part import Learnable
from unmask.records import Amount, Fact, Instance, Ints
from unmask.train.course import Crew, Lesson, Moment
from unmask.tune.encode import Encoded

PLACE = "tune"
_JUDGED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Answered:
    """Encoded rows, and the truth about each."""

    rows: Encoded
    truth: Fact | Amount

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, chosen: Ints) -> Instance:
        """Some rows with their truths."""
        match self.truth:
            case Fact(name, value):
                return Instance(self.rows.take(chosen), (Fact(name, value[chosen]),))
            case Amount(name, numbers):
                return Instance(self.rows.take(chosen), (Amount(name, numbers[chosen]),))


@dataclass(frozen=True, slots=True)
class Labelled:
    """Batches of labelled rows, epoch after epoch; implements `Course`.

    Batches are always full: the last one of an epoch is filled up with the first rows of the next.
    """

    learned: Answered
    judged: Answered
    objective: Learnable
    batch: int
    length: int
    seed: int

    @property
    def mixed(self) -> bool:
        """Every lesson asks the same."""
        return False

    def steps(self, epochs: float) -> int:
        """How many steps show every row this many times."""
        return max(1, int(np.ceil(epochs * len(self.learned) / self.batch)))

    def lesson(self, moment: Moment, crew: Crew) -> Lesson:
        """The rows of this step that fall to this process."""
        visits = Visits(len(self.learned), EveryVisit(), Key.of(self.seed, PLACE))
        row, _ = visits(moment.step * self.batch + np.arange(self.batch))
        return self._lesson(*(self.learned.at(some) for some in crew.shares(row, self.length)))

    def trial(self) -> tuple[Lesson, ...]:
        """All rows to be judged by, those of like length together."""
        return tuple(self._lesson(self.judged.at(some)) for some in by_length(self.judged.rows))

    def _lesson(self, *instances: Instance) -> Lesson:
        return Lesson(instances, (self.objective,), apart=False, place=PLACE, length=self.length)


def by_length(rows: Encoded, most: int = _JUDGED_AT_ONCE) -> list[Ints]:
    """Row numbers in batches of like length: the order is of no matter where nothing is learned."""
    order = np.argsort(rows.lengths, kind="stable")
    return [order[first : first + most] for first in range(0, len(order), most)]
