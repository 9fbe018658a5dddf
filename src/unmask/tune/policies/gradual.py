"""Gradual unfreezing: the head learns first, then one block after another joins, from the top (Howard and Ruder, 2018).

What arrives: a learner. What leaves: the same learner, and for every parameter the moment at which it begins to move.
What never happens here: a counter. Whether a parameter moves follows from how far the run has come, so a resume thaws
what an undisturbed run would have thawed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import RecipeError
from unmask.optimising import Schedule, Slanted
from unmask.train.pace import Pace
from unmask.tune.places import Place
from unmask.tune.policy import Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Gradual:
    """ULMFiT's three habits: gradual unfreezing, a rate for each level, and a slanted triangular schedule.

    The paper gives each level an epoch of its own and then trains on until nothing improves. Here the run has a budget,
    and a deep network has more levels than a task has epochs; so the levels join in equal steps over the first part of
    the budget, and the rest is for all of them together.
    """

    decay: float = 1 / 2.6
    """The rate of a level as a part of the rate of the level above it."""
    until: float = 0.5
    """The share of the budget after which everything moves."""
    name: ClassVar[str] = "gradual"
    usual_rate: ClassVar[float] = 5e-4
    schedule: ClassVar[Schedule] = Slanted()
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise RecipeError(f"The rate of a level is a part of the rate above it, found {self.decay}.")
        if not 0 <= self.until < 1:
            raise RecipeError(f"Everything must move after a share of the budget below 1, found {self.until}.")

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Nothing is added."""

    def pace(self, place: Place, top: int) -> Pace:
        """The lower, the later and the slower; the embeddings are last."""
        below = top - place.level
        return Pace(self.decay**below, self.until * below / top)
