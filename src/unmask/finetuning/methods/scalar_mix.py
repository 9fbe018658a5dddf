"""Weighted layers: the head reads a learned mixture of all layers (Peters et al., 2018).

What arrives: a learner. What leaves: a learner whose heads read `gamma * sum of s_j * layer j` over the embeddings and
all blocks.
What never happens here: a choice of layers by hand. How much each counts is learned, and can be read afterwards from
`learner.mix.shares()`.
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
"""The highest rate of the weights of layers. They are a handful of numbers that begin at 0: at the rate of a head they
would hardly leave it before a small task is over."""


@dataclass(frozen=True, slots=True)
class ScalarMixing:
    """ELMo's mixture over a trunk at rest, or over one that moves with the task."""

    train_encoder: bool = False
    """Whether the trunk moves, too."""
    cache_features: bool = True
    """Whether the layers of a trunk at rest are kept. It takes as much room for each layer as `Frozen` takes at all."""
    name: ClassVar[str] = "layers"
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE

    @property
    def default_lr(self) -> float:
        """That of a head alone, or that of a whole network."""
        return 5e-5 if self.train_encoder else 1e-3

    @property
    def caches(self) -> CachedLayers:
        """Every layer is read."""
        return CachedLayers.ALL if self.cache_features and not self.train_encoder else CachedLayers.NOTHING

    @property
    def saves_delta_only(self) -> bool:
        """A trunk at rest is the one that it came from."""
        return not self.train_encoder

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Put the mixture between trunk and heads; all layers count alike at first."""
        from unmask.nets.layers.scalar_mix import ScalarMix

        learner.layer_mix = ScalarMix(len(learner.network.blocks()) + 1)
        if not self.train_encoder:
            learner.freeze_encoder()

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Mixture and head move, the trunk only on wish."""
        if location.role is ParameterRole.MIX:
            return ParamLR(_MIX_LR / self.default_lr)
        return ParamLR() if location.is_above_encoder or self.train_encoder else FROZEN
