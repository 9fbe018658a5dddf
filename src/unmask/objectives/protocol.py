"""The protocol of objectives: what is predicted, from which targets, at which cost. No torch until a head is built.

An objective is a frozen dataclass that is its own configuration. It inherits from `Objective` and states what differs
from the defaults: most have a head that reads hidden states; a generator has a network that rewrites the inputs first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from unmask.config.attention_pattern import PredictionSite, RowCoordinates
from unmask.core.errors import RecipeError
from unmask.core.records import InputsAndTargets, Target

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkConfig
    from unmask.nets.accounting.flops import ForwardCost
    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


@dataclass(frozen=True, slots=True)
class PredictionSites:
    """Where an objective predicts in a sample row: its prediction sites, and the positions whose input is hidden."""

    sites: tuple[PredictionSite, ...] = ()
    hidden: tuple[int, ...] = ()


class Objective(Protocol):
    """Something a network is trained to predict."""

    has_head: ClassVar[bool] = True
    """Whether a network can be trained on it; without a head its rows can be prepared, walked and audited alone."""
    rewrites_inputs: ClassVar[bool] = False
    """Whether its network runs before the backbone and decides what the backbone reads (a generator)."""
    requires: ClassVar[type[Objective] | None] = None
    """The objective that must rewrite the inputs before; None if any inputs will do."""

    prepares_batch: ClassVar[bool] = False
    """Whether `prepare` changes a batch; it is not called otherwise."""

    @property
    def name(self) -> str:
        """The name of its head in a checkpoint, and of its losses in a record."""

    @property
    def target_type(self) -> type[Target]:
        """The kind of target it is trained on."""

    @property
    def facts(self) -> frozenset[str]:
        """The facts about a row that its target states."""

    @property
    def weight(self) -> float:
        """Its weight in the sum of losses."""

    @property
    def first_only(self) -> bool:
        """Whether its head reads the first token of each row only."""
        return False

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Where it predicts input tokens, so that an attention pattern can be checked for leaks; nowhere by default."""
        return PredictionSites()

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network that it cannot be trained on; any will do by default."""
        return None

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The module that turns the hidden states of a backbone into a `LossSum`."""
        raise RecipeError(f"{type(self).__name__} has no head. Take another objective to train a network.")

    def build_network(self, backbone: Backbone) -> nn.Module:
        """The module that reads a batch first: it returns its own `LossSum`, and the batch that all others read."""
        raise RecipeError(f"{type(self).__name__} does not rewrite inputs. Build its head instead.")

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """The count of its `LossSum`, known before the network runs."""
        raise RecipeError(f"{type(self).__name__} has no head. Take another objective to train a network.")

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """The FLOPs that its head, or its network, adds to a forward pass."""
        raise RecipeError(
            f"{type(self).__name__} does not define its cost, so its FLOPs cannot be counted. Give it a method "
            "`cost`, as unmask.objectives.protocol.Objective describes it."
        )

    def prepare(self, batch: Batch) -> Batch:
        """The batch with what its head reads beyond the target, found on the host before the batch is transferred."""
        return batch


def predicted_positions(sample: RowCoordinates) -> tuple[int, ...]:
    """The positions of a sample row that are predicted: those with a rank in the factorization order."""
    return tuple(i for i, rank in enumerate(sample.rank.tolist()) if rank >= 0)
