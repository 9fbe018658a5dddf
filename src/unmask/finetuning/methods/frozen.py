"""Feature extraction from a frozen encoder: its last layer, or a learned mix of all layers (ELMo).

The features of a frozen encoder are cached, so that later epochs train the head alone.
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

_MIX_LR = 1e-2
"""Peak learning rate of the layer weights: a few numbers that start at 0 and would hardly change at that of a head."""


@dataclass(frozen=True, slots=True)
class FrozenEncoder:
    """The encoder is frozen, in eval mode; the head alone is trained and saved."""

    cache_features: bool = True
    """Whether features are cached. Without a cache every epoch computes them again, with the same result."""
    name: ClassVar[str] = "frozen"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    saves_delta_only: ClassVar[bool] = True

    @property
    def caches(self) -> CachedLayers:
        """The head reads the last layer."""
        return CachedLayers.LAST if self.cache_features else CachedLayers.NOTHING

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Freeze the encoder."""
        learner.freeze_encoder()

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Heads are trained."""
        return ParamLR() if location.is_above_encoder else FROZEN


@dataclass(frozen=True, slots=True)
class ScalarMixing:
    """Heads read a scalar mix of all layers, `gamma * sum of s_j * layer j`, learned per task (Peters et al., 2018)."""

    train_encoder: bool = False
    """Whether the encoder is trained too."""
    cache_features: bool = True
    """Whether the layers of a frozen encoder are cached; each layer takes as much space as `FrozenEncoder` in all."""
    name: ClassVar[str] = "layers"
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE

    @property
    def default_lr(self) -> float:
        """That of a head alone, or that of a whole network."""
        return 5e-5 if self.train_encoder else 1e-3

    @property
    def caches(self) -> CachedLayers:
        """All layers are read."""
        return CachedLayers.ALL if self.cache_features and not self.train_encoder else CachedLayers.NOTHING

    @property
    def saves_delta_only(self) -> bool:
        """A frozen encoder is that of the base model."""
        return not self.train_encoder

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Add the scalar mix between encoder and heads, with equal weights at first."""
        from unmask.nets.layers.scalar_mix import ScalarMix

        learner.layer_mix = ScalarMix(len(learner.network.blocks()) + 1)
        if not self.train_encoder:
            learner.freeze_encoder()

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Scalar mix and heads are trained, the encoder only on request."""
        if location.role is ParameterRole.MIX:
            return ParamLR(_MIX_LR / self.default_lr)
        return ParamLR() if location.is_above_encoder or self.train_encoder else FROZEN
