"""Gradual unfreezing: the head learns first, then one block after another joins, from the top (Howard and Ruder, 2018).

What arrives: a learner. What leaves: the same learner, and for every parameter the moment at which it begins to move.
What never happens here: a counter. Whether a parameter moves follows from how far the run has come, so a resume thaws
what an undisturbed run would have thawed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule, SlantedTriangular
from unmask.core.errors import RecipeError
from unmask.finetuning.methods.protocol import CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation
from unmask.train.optim.param_lr import ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class GradualUnfreezing:
    """ULMFiT's three habits: gradual unfreezing, a rate for each level, and a slanted triangular schedule.

    The paper gives each level an epoch of its own and then trains on until nothing improves. Here the run has a budget,
    and a deep network has more levels than a task has epochs; so the levels join in equal steps over the first part of
    the budget, and the rest is for all of them together.
    """

    layer_lr_decay: float = 1 / 2.6
    """The rate of a level as a part of the rate of the level above it."""
    unfreeze_fraction: float = 0.5
    """The share of the budget after which everything moves."""
    name: ClassVar[str] = "gradual"
    default_lr: ClassVar[float] = 5e-4
    schedule: ClassVar[Schedule] = SlantedTriangular()
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.layer_lr_decay <= 1:
            raise RecipeError(f"The rate of a level is a part of the rate above it, found {self.layer_lr_decay}.")
        if not 0 <= self.unfreeze_fraction < 1:
            raise RecipeError(
                f"Everything must move after a share of the budget below 1, found {self.unfreeze_fraction}."
            )

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The lower, the later and the slower; the embeddings are last."""
        below = top_level - location.level
        return ParamLR(self.layer_lr_decay**below, self.unfreeze_fraction * below / top_level)
