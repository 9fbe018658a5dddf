"""What is learned, step by step: the one thing that the loop asks for.

What arrives: a moment of a run. What leaves: the rows of that moment, and what is asked about them.
What never happens here: a position that must be saved. A lesson is a function of its moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unmask.errors import RecipeError
from unmask.objectives.part import Taught
from unmask.records import Cloze, Instance, Ints


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a run has come."""

    step: int
    """Steps that are finished."""
    share: float
    """The share of the budget that is used up, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who asks: this process of how many, and how much it takes at once."""

    rank: int = 0
    world: int = 1
    micro: int = 1 << 62
    """Most tokens in a micro-batch."""

    def shares(self, rows: Ints, length: int) -> tuple[Ints, ...]:
        """The rows of this process, in micro-batches, if rows are at most `length` tokens long.

        Every process gets equally many micro-batches, and none is empty.
        """
        if len(rows) < self.world:
            raise RecipeError(
                f"{self.world} processes share the rows of a step, but there are only {len(rows)}. Take fewer "
                "processes, or a larger batch."
            )
        at_once = max(self.micro // length, 1)
        most = -(-len(rows) // self.world)
        parts = min(-(-most // at_once), len(rows) // self.world)
        return tuple(np.array_split(np.array_split(rows, self.world)[self.rank], parts))


ALONE = Crew()


@dataclass(frozen=True, slots=True)
class Lesson:
    """The rows that one process learns from in one step, and what is asked about them."""

    instances: tuple[Instance, ...]
    """One for each micro-batch."""
    objectives: tuple[Taught, ...]
    apart: bool
    """Whether the documents of a row are kept from seeing each other."""
    place: str
    """What the record calls it: the name of the task."""
    length: int
    """The longest row that was possible; what is missing to it would be padding elsewhere."""

    def asked(self) -> tuple[int, ...]:
        """How many answers each objective is judged on, over all micro-batches."""
        return tuple(sum(one.asked(instance) for instance in self.instances) for one in self.objectives)

    @property
    def tokens(self) -> int:
        """Real tokens; there is no padding."""
        return sum(len(instance.inputs.ids) for instance in self.instances)

    @property
    def rows(self) -> int:
        """Rows in all micro-batches."""
        return sum(len(instance.inputs.rows) - 1 for instance in self.instances)

    @property
    def predicted(self) -> int:
        """Tokens that a cloze asks for."""
        targets = (target for instance in self.instances for target in instance.targets)
        return sum(len(target.positions) for target in targets if isinstance(target, Cloze))


class Course(Protocol):
    """Lessons for every moment of a run, and a trial that is always the same."""

    @property
    def mixed(self) -> bool:
        """Whether lessons differ in what they ask, so that a head may rest in some steps."""

    def lesson(self, moment: Moment, crew: Crew) -> Lesson:
        """What this process learns from now."""

    def stage_at(self, share: float) -> int:
        """The stage that a share of the budget falls into: within one, a lesson follows from its step alone."""

    def trial(self) -> tuple[Lesson, ...]:
        """Rows that are never learned from, always under the same draws."""
