"""Frozen: the network stays as it is, and only the head on it learns.

What arrives: a learner. What leaves: a learner whose trunk is at rest: no dropout, no gradient.
What never happens here: the same work twice. What a trunk at rest makes of a row is computed once and kept, so that
later epochs cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class FrozenEncoder:
    """The trunk is a source of features; the head alone is trained and saved."""

    cache_features: bool = True
    """Whether the features are kept. Without that, every epoch computes them again, for the same scores."""
    name: ClassVar[str] = "frozen"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    saves_delta_only: ClassVar[bool] = True

    @property
    def caches(self) -> CachedLayers:
        """The last layer is all that a head reads."""
        return CachedLayers.LAST if self.cache_features else CachedLayers.NOTHING

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Put the trunk to rest."""
        learner.freeze_encoder()

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The head moves, the trunk never."""
        return ParamLR() if location.is_above_encoder else FROZEN
