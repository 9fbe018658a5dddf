"""The course of a fine-tune: questions in a new order every epoch, and questions to be judged by.

What arrives: exercises. What leaves: the lesson of any moment.
What never happens here: a shuffled list. An epoch is a keyed permutation, so any step is computed without the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.examples.visits import EveryVisit, Visits
from unmask.keys import Key
from unmask.objectives.part import Learnable
from unmask.records import Instance, Ints
from unmask.train.course import Crew, Lesson, Moment
from unmask.tune.exercise import Exercise

PLACE = "tune"
JUDGED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Labelled:
    """Batches of questions, epoch after epoch; implements `Course`.

    Batches are always full: the last one of an epoch is filled up with the first questions of the next.
    """

    learned: Exercise
    judged: Exercise
    objective: Learnable
    batch: int
    length: int
    seed: int
    place: str = PLACE

    @property
    def mixed(self) -> bool:
        """Every lesson asks the same."""
        return False

    def steps(self, epochs: float) -> int:
        """How many steps show every question this many times."""
        return max(1, int(np.ceil(epochs * len(self.learned) / self.batch)))

    def lesson(self, moment: Moment, crew: Crew) -> Lesson:
        """The questions of this step that fall to this process."""
        return self._lesson(*(self.learned.at(items) for items, _ in self.draws(moment, crew)))

    def stage_at(self, share: float) -> int:
        """There is one stage."""
        return 0

    def draws(self, moment: Moment, crew: Crew) -> tuple[tuple[Ints, Key], ...]:
        """The questions of this process in micro-batches, by number, and the key of each at this visit."""
        visits = Visits(len(self.learned), EveryVisit(), Key.of(self.seed, self.place))
        item, key = visits(moment.step * self.batch + np.arange(self.batch))
        shares = crew.shares(np.arange(self.batch), self.length * self.learned.most)
        return tuple((item[some], Key(key.state[some])) for some in shares)

    def trial(self) -> tuple[Lesson, ...]:
        """All questions to be judged by, those of like length together."""
        return tuple(self._lesson(self.judged.at(some)) for some in self.judged.by_length(JUDGED_AT_ONCE))

    def _lesson(self, *instances: Instance) -> Lesson:
        return Lesson(instances, (self.objective,), apart=False, place=self.place, length=self.length)
