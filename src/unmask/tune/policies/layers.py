"""Weighted layers: the head reads a learned mixture of all layers (Peters et al., 2018).

What arrives: a learner. What leaves: a learner whose heads read `gamma * sum of s_j * layer j` over the embeddings and
all blocks.
What never happens here: a choice of layers by hand. How much each counts is learned, and can be read afterwards from
`learner.mix.shares()`.
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

_MIX_RATE = 1e-2
"""The highest rate of the weights of layers. They are a handful of numbers that begin at 0: at the rate of a head they
would hardly leave it before a small task is over."""


@dataclass(frozen=True, slots=True)
class Layers:
    """ELMo's mixture over a trunk at rest, or over one that moves with the task."""

    move: bool = False
    """Whether the trunk moves, too."""
    cache: bool = True
    """Whether the layers of a trunk at rest are kept. It takes as much room for each layer as `Frozen` takes at all."""
    name: ClassVar[str] = "layers"
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE

    @property
    def usual_rate(self) -> float:
        """That of a head alone, or that of a whole network."""
        return 5e-5 if self.move else 1e-3

    @property
    def remembers(self) -> Recall:
        """Every layer is read."""
        return Recall.ALL if self.cache and not self.move else Recall.NOTHING

    @property
    def apart(self) -> bool:
        """A trunk at rest is the one that it came from."""
        return not self.move

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Put the mixture between trunk and heads; all layers count alike at first."""
        from unmask.nets.mix import LayerMix

        learner.mix = LayerMix(len(learner.trunk.blocks()) + 1)
        if not self.move:
            learner.rest_trunk()

    def pace(self, place: Place, top: int) -> Pace:
        """Mixture and head move, the trunk only on wish."""
        if place.part is Part.MIX:
            return Pace(_MIX_RATE / self.usual_rate)
        return Pace() if place.above or self.move else STILL
