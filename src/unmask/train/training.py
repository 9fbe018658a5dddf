"""Everything that decides what is learned.

What arrives: a learner, a course, how to descend, a budget. What leaves: one value that says it all.
What never happens here: where and how it is computed. That is a `Run`, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.optimising import Descent
from unmask.train.budget import Budget
from unmask.train.course import Course
from unmask.train.learner import Learner
from unmask.train.pace import Paces, full_pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Everything that decides what is learned."""

    learner: Learner
    """With its first weights; a resume replaces them."""
    course: Course
    descent: Descent
    budget: Budget
    seed: int
    paces: Paces = full_pace
    """How fast each parameter moves, and from when on."""
