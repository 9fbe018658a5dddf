"""Adapters: two small bottlenecks in every block learn the task, the network around them stays (Houlsby et al., 2019).

What arrives: a learner. What leaves: a learner with adapters that change almost nothing yet.
What never happens here: a large file for each task. Adapters, norms and head are trained and saved; the trunk is shared
by all tasks, and a folder of adapters is refused on any other trunk.
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
    """A bottleneck after attention and one after the feed-forward layer of every block, before sum and norm.

    Blocks that share a branch (ALBERT) share its adapter, too: such a network has one adapter for all of its depth.
    """

    width: int = 64
    """Of the bottleneck. The paper tried 8, 64 and 256."""
    name: ClassVar[str] = "adapter"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise RecipeError(f"An adapter needs a width of at least 1, found {self.width}.")

    def check(self, trunk: NetworkConfig) -> None:
        """Refuse an adapter that is larger than the layers it stands between."""
        if self.width > 4 * trunk.width:
            raise RecipeError(
                f"An adapter of width {self.width} is larger than the layers around it: the network is {trunk.width} "
                "wide. Take a lower --adapter-width; usual is 64."
            )

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Put an adapter into every branch."""
        from unmask.nets.layers.adapter import add_adapters

        add_adapters(learner.network, self.width, seed)

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Adapters, norms and heads move."""
        return FROZEN if location.role in (ParameterRole.EMBED, ParameterRole.BLOCK) else ParamLR()
