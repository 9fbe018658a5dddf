"""Norms: only the gains and biases of the layer norms move, and the head.

What arrives: a learner. What leaves: the same learner.
What never happens here: a new weight. It is the smallest change of a trunk, and what adapters are compared with
(Houlsby et al., 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.optimising import Schedule
from unmask.train.pace import STILL, Pace
from unmask.tune.places import Part, Place
from unmask.tune.policy import USUAL_SCHEDULE, Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Norms:
    """Norms and head are trained and saved."""

    name: ClassVar[str] = "norms"
    usual_rate: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = True

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Nothing is added."""

    def pace(self, place: Place, top: int) -> Pace:
        """Norms and heads move."""
        return STILL if place.part in (Part.EMBED, Part.BLOCK) else Pace()
