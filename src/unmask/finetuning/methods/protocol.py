"""What of a network may move while it is tuned: the protocol of all policies, and the plainest of them.

What arrives: a learner whose trunk knows something. What leaves: the learner with what the policy adds to it, and the
pace of every parameter.
What never happens here: knowing what is asked. A policy serves every output. Nor torch, until a learner is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from unmask.config.optim import Linear, Schedule, WarmupFraction
from unmask.core.errors import RecipeError
from unmask.finetuning.parameter_roles import ParameterLocation, locate_parameters, top_level
from unmask.train.optim.param_lr import ParamLR, ParamLRFn

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


class CachedLayers(StrEnum):
    """What is computed once and kept, because the trunk never moves."""

    NOTHING = "nothing"
    LAST = "the last layer"
    ALL = "all layers"


class Method(Protocol):
    """What may move: a frozen value, kept as JSON."""

    name: ClassVar[str]

    @property
    def default_lr(self) -> float:
        """The highest rate, unless the user wishes for another."""

    @property
    def schedule(self) -> Schedule:
        """How the rate goes over the run."""

    @property
    def caches(self) -> CachedLayers:
        """Which states of a trunk that never moves are computed once and kept."""

    @property
    def saves_delta_only(self) -> bool:
        """Whether only what moved is saved: the tuned folder then needs the network that it came from."""

    def check(self, trunk: NetworkConfig) -> None:
        """Refuse a network that cannot be tuned so, before anything is made or written."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Put into the learner what is learned beside the trunk, newly drawn from the seed."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """How fast a parameter at this place moves. `top` is the level of the heads."""


DEFAULT_SCHEDULE = Linear(WarmupFraction(0.1))
"""A tenth of the steps to warm up, then a straight fall (Devlin et al., 2018)."""


@dataclass(frozen=True, slots=True)
class FullFineTuning:
    """Every weight moves, as in BERT's paper; with a decay, lower layers more slowly (Sun et al., 2019; ELECTRA)."""

    layer_lr_decay: float = 1.0
    """The rate of a layer as a part of the rate of the layer above it; 1 for all alike."""
    name: ClassVar[str] = "full"
    default_lr: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.layer_lr_decay <= 1:
            raise RecipeError(f"A layer-wise decay lies above 0 and is at most 1, found {self.layer_lr_decay}.")

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The full rate at the top, and a part of it for each layer below."""
        return ParamLR(self.layer_lr_decay ** (top_level - location.level))


def param_lrs(method: Method, learner: MultiHeadModel) -> ParamLRFn:
    """The pace of every parameter of an equipped learner, by name."""
    top = top_level(learner)
    found = {name: method.param_lr(place, top) for name, place in locate_parameters(learner).items()}
    return found.__getitem__


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """How many parameters a policy trains, and of how many; shared ones are counted once."""

    num_trained: int
    num_total: int

    @property
    def trained_fraction(self) -> float:
        """Which part of the network it is."""
        return self.num_trained / self.num_total


def count_trained(learner: MultiHeadModel, method: Method) -> ParameterCounts:
    """Count the parameters of an equipped learner: those that ever move, and all."""
    paces = param_lrs(method, learner)
    sizes = {name: parameter.numel() for name, parameter in learner.named_parameters()}
    return ParameterCounts(sum(size for name, size in sizes.items() if paces(name).is_trained), sum(sizes.values()))
