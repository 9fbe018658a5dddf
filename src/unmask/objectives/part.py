"""The protocol of this folder: an objective says what must be said, and which answers must stay out of sight.

What arrives: the kind of target that a corruption makes. What leaves: a declaration that a task can check.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from unmask.records import Instance, Target
from unmask.views import Answer, Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Question:
    """What an objective would ask of a sample row: its answers, and the positions whose input is hidden."""

    answers: tuple[Answer, ...] = ()
    hidden: tuple[int, ...] = ()


class Objective(Protocol):
    """Something a network learns to say. A frozen dataclass that is its own configuration."""

    @property
    def name(self) -> str:
        """What its head is called in a checkpoint, and its numbers in a record."""

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


@runtime_checkable
class Learnable(Objective, Protocol):
    """An objective with a head, so that a network can learn it."""

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """The module that turns the states of a trunk into a `Term`; `token` is the trunk's own embedding."""

    def asked(self, instance: Instance) -> int:
        """How many answers it is judged on: the count of its `Term`, known before the network runs."""


def ranked(sample: Layout) -> tuple[int, ...]:
    """The positions of a sample row that are to be predicted: those that have a place in the drawn order."""
    return tuple(i for i, rank in enumerate(sample.rank.tolist()) if rank >= 0)
