"""The protocol of this folder: an objective says what must be said, and which answers must stay out of sight.

What arrives: the kind of target that a corruption makes. What leaves: a declaration that a task can check.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from unmask.config.attention_pattern import PredictionSite, RowCoordinates
from unmask.core.records import Cloze, InputsAndTargets, Target

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkConfig
    from unmask.nets.accounting.flops import ForwardCost
    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


@dataclass(frozen=True, slots=True)
class PredictionSites:
    """What an objective would ask of a sample row: its answers, and the positions whose input is hidden."""

    sites: tuple[PredictionSite, ...] = ()
    hidden: tuple[int, ...] = ()


class Objective(Protocol):
    """Something a network learns to say. A frozen dataclass that is its own configuration."""

    @property
    def name(self) -> str:
        """What its head is called in a checkpoint, and its numbers in a record."""

    @property
    def target_type(self) -> type[Target]:
        """The kind of target it is trained on."""

    @property
    def facts(self) -> frozenset[str]:
        """The facts about a row that it must be told."""

    @property
    def weight(self) -> float:
        """Its share in the sum of losses."""

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Where it reads its predictions, so that a view can be checked for leaks."""


@runtime_checkable
class TrainableObjective(Objective, Protocol):
    """An objective with a head, so that a network can learn it."""

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The module that turns the states of a trunk into a `Term`; `token` is the trunk's own embedding."""

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """How many answers it is judged on: the count of its `Term`, known before the network runs."""


@runtime_checkable
class InputRewriter(Objective, Protocol):
    """An objective whose network acts before the trunk, and decides what the trunk is shown."""

    def check(self, config: NetworkConfig) -> None:
        """Refuse a trunk that its network cannot stand beside."""

    def build_network(self, backbone: Backbone) -> nn.Module:
        """The module that reads a batch first: it gives its own `Term`, and the batch that all others read instead."""

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """How many answers it is judged on: the count of its `Term`, known before any network runs."""


@runtime_checkable
class NeedsInputRewriter(Objective, Protocol):
    """An objective that asks about what another one, which acts ahead of it, has written."""

    @property
    def requires(self) -> type[Objective]:
        """What must act ahead of it."""


@runtime_checkable
class HasFlops(Objective, Protocol):
    """An objective that says what it costs, so that budgets can be given in floating point operations."""

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """What its head, or its network ahead of the trunk, adds to a forward pass."""


@runtime_checkable
class PreparesBatch(Objective, Protocol):
    """An objective whose head reads more than the answers of its target, found on the host before a batch is sent."""

    def prepare(self, batch: Batch) -> Batch:
        """The batch with what the head reads."""


Trainable: TypeAlias = TrainableObjective | InputRewriter
"""What a network can be taught: it is said from the states of the trunk, or ahead of it."""


def num_masked(instance: InputsAndTargets) -> int:
    """How many positions the cloze of an instance asks about."""
    return sum(len(target.positions) for target in instance.targets if isinstance(target, Cloze))


def predicted_positions(sample: RowCoordinates) -> tuple[int, ...]:
    """The positions of a sample row that are to be predicted: those that have a place in the drawn order."""
    return tuple(i for i, rank in enumerate(sample.rank.tolist()) if rank >= 0)
