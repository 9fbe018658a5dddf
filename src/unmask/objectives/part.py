"""The protocol of this folder: an objective says what must be said, and which answers must stay out of sight.

What arrives: the kind of target that a corruption makes. What leaves: a declaration that a task can check.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from unmask.records import Cloze, Instance, Target
from unmask.views import Answer, Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.batch import Batch
    from unmask.nets.flops import Cost
    from unmask.nets.transformer import Transformer
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


@runtime_checkable
class Ahead(Objective, Protocol):
    """An objective whose network acts before the trunk, and decides what the trunk is shown."""

    def check(self, trunk: Trunk) -> None:
        """Refuse a trunk that its network cannot stand beside."""

    def network(self, trunk: Transformer) -> nn.Module:
        """The module that reads a batch first: it gives its own `Term`, and the batch that all others read instead."""

    def asked(self, instance: Instance) -> int:
        """How many answers it is judged on: the count of its `Term`, known before any network runs."""


@runtime_checkable
class Behind(Objective, Protocol):
    """An objective that asks about what another one, which acts ahead of it, has written."""

    @property
    def follows(self) -> type[Objective]:
        """What must act ahead of it."""


@runtime_checkable
class Counted(Objective, Protocol):
    """An objective that says what it costs, so that budgets can be given in floating point operations."""

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """What its head, or its network ahead of the trunk, adds to a forward pass."""


@runtime_checkable
class Prepares(Objective, Protocol):
    """An objective whose head reads more than the answers of its target, found on the host before a batch is sent."""

    def prepare(self, batch: Batch) -> Batch:
        """The batch with what the head reads."""


Taught: TypeAlias = Learnable | Ahead
"""What a network can be taught: it is said from the states of the trunk, or ahead of it."""


def chosen(instance: Instance) -> int:
    """How many positions the cloze of an instance asks about."""
    return sum(len(target.positions) for target in instance.targets if isinstance(target, Cloze))


def ranked(sample: Layout) -> tuple[int, ...]:
    """The positions of a sample row that are to be predicted: those that have a place in the drawn order."""
    return tuple(i for i, rank in enumerate(sample.rank.tolist()) if rank >= 0)
