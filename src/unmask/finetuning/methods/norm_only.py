"""Norms: only the gains and biases of the layer norms move, and the head.

What arrives: a learner. What leaves: the same learner.
What never happens here: a new weight. It is the smallest change of a trunk, and what adapters are compared with
(Houlsby et al., 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class NormOnly:
    """Norms and head are trained and saved."""

    name: ClassVar[str] = "norms"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Norms and heads move."""
        return FROZEN if location.role in (ParameterRole.EMBED, ParameterRole.BLOCK) else ParamLR()
