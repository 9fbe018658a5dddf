"""Adapters: two small bottlenecks in every block learn the task, the network around them stays (Houlsby et al., 2019).

What arrives: a learner. What leaves: a learner with adapters that change almost nothing yet.
What never happens here: a large file for each task. Adapters, norms and head are trained and saved; the trunk is shared
by all tasks, and a folder of adapters is refused on any other trunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import RecipeError
from unmask.optimising import Schedule
from unmask.train.pace import STILL, Pace
from unmask.tune.places import Part, Place
from unmask.tune.policy import USUAL_SCHEDULE, Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Adapter:
    """A bottleneck after attention and one after the feed-forward layer of every block, before sum and norm.

    Blocks that share a branch (ALBERT) share its adapter, too: such a network has one adapter for all of its depth.
    """

    width: int = 64
    """Of the bottleneck. The paper tried 8, 64 and 256."""
    name: ClassVar[str] = "adapter"
    usual_rate: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise RecipeError(f"An adapter needs a width of at least 1, found {self.width}.")

    def check(self, trunk: Trunk) -> None:
        """Refuse an adapter that is larger than the layers it stands between."""
        if self.width > 4 * trunk.width:
            raise RecipeError(
                f"An adapter of width {self.width} is larger than the layers around it: the network is {trunk.width} "
                "wide. Take a lower --width; usual is 64."
            )

    def equip(self, learner: Learner, seed: int) -> None:
        """Put an adapter into every branch."""
        from unmask.nets.adapters import add_adapters

        add_adapters(learner.trunk, self.width, seed)

    def pace(self, place: Place, top: int) -> Pace:
        """Adapters, norms and heads move."""
        return STILL if place.part in (Part.EMBED, Part.BLOCK) else Pace()
