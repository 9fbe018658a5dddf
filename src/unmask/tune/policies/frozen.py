"""Frozen: the network stays as it is, and only the head on it learns.

What arrives: a learner. What leaves: a learner whose trunk is at rest: no dropout, no gradient.
What never happens here: the same work twice. What a trunk at rest makes of a row is computed once and kept, so that
later epochs cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.optimising import Schedule
from unmask.train.pace import STILL, Pace
from unmask.tune.places import Place
from unmask.tune.policy import USUAL_SCHEDULE, Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Frozen:
    """The trunk is a source of features; the head alone is trained and saved."""

    cache: bool = True
    """Whether the features are kept. Without that, every epoch computes them again, for the same scores."""
    name: ClassVar[str] = "frozen"
    usual_rate: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    apart: ClassVar[bool] = True

    @property
    def remembers(self) -> Recall:
        """The last layer is all that a head reads."""
        return Recall.LAST if self.cache else Recall.NOTHING

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Put the trunk to rest."""
        learner.rest_trunk()

    def pace(self, place: Place, top: int) -> Pace:
        """The head moves, the trunk never."""
        return Pace() if place.above else STILL
