"""Top: the highest blocks and the head move, everything below them stays.

What arrives: a learner. What leaves: the same learner.
What never happens here: a gradient below the blocks that move, so that fewer blocks also take less time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import RecipeError
from unmask.optimising import Schedule
from unmask.train.pace import STILL, Pace
from unmask.tune.places import Place
from unmask.tune.policy import USUAL_SCHEDULE, Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Top:
    """Some blocks from the top down.

    Where blocks share weights (ALBERT), lower ones would move with them; so they must be all that share.
    """

    blocks: int = 1
    name: ClassVar[str] = "top"
    usual_rate: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise RecipeError(f"At least 1 block moves with the policy 'top', found {self.blocks}. See also 'frozen'.")

    def check(self, trunk: Trunk) -> None:
        """Refuse more blocks than there are, and blocks that cannot move alone."""
        if self.blocks > trunk.depth:
            raise RecipeError(
                f"{self.blocks} blocks shall move, but the network has {trunk.depth}. Take {trunk.depth} or fewer, or "
                "the policy 'full'."
            )
        apart = [n for n in range(1, trunk.depth + 1) if not set(trunk.turns[:-n]) & set(trunk.turns[-n:])]
        if self.blocks not in apart:
            raise RecipeError(
                f"{self.blocks} of {trunk.depth} blocks shall move, but they share weights with lower ones, which "
                f"would move, too. Take --blocks {next(n for n in apart if n > self.blocks)}, or the policy 'full'."
            )

    def equip(self, learner: Learner, seed: int) -> None:
        """Nothing is added."""

    def pace(self, place: Place, top: int) -> Pace:
        """The highest blocks move, with the last norm and the heads."""
        return Pace() if place.level >= top - self.blocks else STILL
