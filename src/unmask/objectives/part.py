"""The protocol of this folder: an objective says what must be said, and which answers must stay out of sight.

What arrives: the kind of target that a corruption makes. What leaves: a declaration that a task can check.
What never happens here: training. An objective is data; the network half gives it its head and its loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unmask.records import Target
from unmask.views import Answer, Layout


@dataclass(frozen=True, slots=True)
class Question:
    """What an objective would ask of a sample row: its answers, and the positions whose input is hidden."""

    answers: tuple[Answer, ...] = ()
    hidden: tuple[int, ...] = ()


class Objective(Protocol):
    """Something a network learns to say. A frozen dataclass that is its own configuration."""

    @property
    def reads(self) -> type[Target]:
        """The kind of target it is trained on."""

    @property
    def facts(self) -> frozenset[str]:
        """The facts about a row that it must be told."""

    @property
    def weight(self) -> float:
        """Its share in the sum of losses."""

    def asks(self, sample: Layout) -> Question:
        """Where it reads its predictions, so that a view can be checked for leaks."""


def ranked(sample: Layout) -> tuple[int, ...]:
    """The positions of a sample row that are to be predicted: those that have a place in the drawn order."""
    return tuple(i for i, rank in enumerate(sample.rank.tolist()) if rank >= 0)
