"""What of a network may move while it is tuned: the protocol of all policies, and the plainest of them.

What arrives: a learner whose trunk knows something. What leaves: the learner with what the policy adds to it, and the
pace of every parameter.
What never happens here: knowing what is asked. A policy serves every output. Nor torch, until a learner is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from unmask.errors import RecipeError
from unmask.optimising import Linear, Schedule, WarmupShare
from unmask.train.pace import Pace, Paces
from unmask.tune.places import Place, places, top_of

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


class Recall(StrEnum):
    """What is computed once and kept, because the trunk never moves."""

    NOTHING = "nothing"
    LAST = "the last layer"
    ALL = "all layers"


class Policy(Protocol):
    """What may move: a frozen value, kept as JSON."""

    name: ClassVar[str]

    @property
    def usual_rate(self) -> float:
        """The highest rate, unless the user wishes for another."""

    @property
    def schedule(self) -> Schedule:
        """How the rate goes over the run."""

    @property
    def remembers(self) -> Recall:
        """Which states of a trunk that never moves are computed once and kept."""

    @property
    def apart(self) -> bool:
        """Whether only what moved is saved: the tuned folder then needs the network that it came from."""

    def check(self, trunk: Trunk) -> None:
        """Refuse a network that cannot be tuned so, before anything is made or written."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Put into the learner what is learned beside the trunk, newly drawn from the seed."""

    def pace(self, place: Place, top: int) -> Pace:
        """How fast a parameter at this place moves. `top` is the level of the heads."""


USUAL_SCHEDULE = Linear(WarmupShare(0.1))
"""A tenth of the steps to warm up, then a straight fall (Devlin et al., 2018)."""


@dataclass(frozen=True, slots=True)
class Full:
    """Every weight moves, as in BERT's paper; with a decay, lower layers more slowly (Sun et al., 2019; ELECTRA)."""

    decay: float = 1.0
    """The rate of a layer as a part of the rate of the layer above it; 1 for all alike."""
    name: ClassVar[str] = "full"
    usual_rate: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise RecipeError(f"A layer-wise decay lies above 0 and is at most 1, found {self.decay}.")

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Nothing is added."""

    def pace(self, place: Place, top: int) -> Pace:
        """The full rate at the top, and a part of it for each layer below."""
        return Pace(self.decay ** (top - place.level))


def paces_of(policy: Policy, learner: Learner) -> Paces:
    """The pace of every parameter of an equipped learner, by name."""
    top = top_of(learner)
    found = {name: policy.pace(place, top) for name, place in places(learner).items()}
    return found.__getitem__


@dataclass(frozen=True, slots=True)
class Trained:
    """How many parameters a policy trains, and of how many; shared ones are counted once."""

    moving: int
    all: int

    @property
    def share(self) -> float:
        """Which part of the network it is."""
        return self.moving / self.all


def trained(learner: Learner, policy: Policy) -> Trained:
    """Count the parameters of an equipped learner: those that ever move, and all."""
    paces = paces_of(policy, learner)
    sizes = {name: parameter.numel() for name, parameter in learner.named_parameters()}
    return Trained(sum(size for name, size in sizes.items() if paces(name).moves), sum(sizes.values()))
