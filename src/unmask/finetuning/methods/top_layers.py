"""Top: the highest blocks and the head move, everything below them stays.

What arrives: a learner. What leaves: the same learner.
What never happens here: a gradient below the blocks that move, so that fewer blocks also take less time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule
from unmask.core.errors import RecipeError
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class TopLayers:
    """Some blocks from the top down.

    Where blocks share weights (ALBERT), lower ones would move with them; so they must be all that share.
    """

    num_blocks: int = 1
    name: ClassVar[str] = "top"
    default_lr: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.num_blocks < 1:
            raise RecipeError(
                f"At least 1 block moves with the policy 'top', found {self.num_blocks}. See also 'frozen'."
            )

    def check(self, trunk: NetworkConfig) -> None:
        """Refuse more blocks than there are, and blocks that cannot move alone."""
        if self.num_blocks > trunk.depth:
            raise RecipeError(
                f"{self.num_blocks} blocks shall move, but the network has {trunk.depth}. Take {trunk.depth} or fewer, or "
                "the policy 'full'."
            )
        apart = [
            n for n in range(1, trunk.depth + 1) if not set(trunk.layer_of_depth[:-n]) & set(trunk.layer_of_depth[-n:])
        ]
        if self.num_blocks not in apart:
            raise RecipeError(
                f"{self.num_blocks} of {trunk.depth} blocks shall move, but they share weights with lower ones, which "
                f"would move, too. Take --num-top-blocks {next(n for n in apart if n > self.num_blocks)}, or the policy 'full'."
            )

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The highest blocks move, with the last norm and the heads."""
        return ParamLR() if location.level >= top_level - self.num_blocks else FROZEN
