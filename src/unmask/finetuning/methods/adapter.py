"""Adapters: two bottleneck modules in every block are trained, the encoder stays frozen (Houlsby et al., 2019).

Adapters, layer norms and the head are saved as delta weights of a shared base model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule
from unmask.core.errors import RecipeError
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class Adapter:
    """A bottleneck after attention and one after the feed-forward layer of every block, before residual sum and norm.

    Blocks with shared weights (ALBERT) share their adapters.
    """

    width: int = 64
    """The width of the bottleneck; 8, 64 and 256 in the paper."""
    name: ClassVar[str] = "adapter"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise RecipeError(f"An adapter needs a width of at least 1, found {self.width}. Correct --adapter-width.")

    def check(self, config: NetworkConfig) -> None:
        """Refuse an adapter that is larger than the layers around it."""
        if self.width > 4 * config.width:
            raise RecipeError(
                f"An adapter of width {self.width} is larger than the layers around it: the network is {config.width} "
                "wide. Use a lower --adapter-width; the default is 64."
            )

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Add an adapter to every residual branch."""
        from unmask.nets.layers.adapter import add_adapters

        add_adapters(learner.network, self.width, seed)

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Adapters, norms and heads are trained."""
        return FROZEN if location.role in (ParameterRole.EMBED, ParameterRole.BLOCK) else ParamLR()
