"""Fine-tuning methods: which parameters are trained, at which learning rate, and which modules are added.

A method knows nothing about the task, and needs no torch before it meets a model.
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
    """The states of a frozen encoder that are cached."""

    NOTHING = "nothing"
    LAST = "the last layer"
    ALL = "all layers"


class Method(Protocol):
    """A fine-tuning method: a frozen value, saved as JSON."""

    name: ClassVar[str]

    @property
    def default_lr(self) -> float:
        """The default peak learning rate."""

    @property
    def schedule(self) -> Schedule:
        """The learning-rate schedule."""

    @property
    def caches(self) -> CachedLayers:
        """The states of a frozen encoder that are cached."""

    @property
    def saves_delta_only(self) -> bool:
        """Whether only the trained weights are saved; loading then needs the base model."""

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network that the method does not fit."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Add the modules of the method to the model, initialized from the seed."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The learning-rate factor of a parameter. `top_level` is the level of the heads."""


DEFAULT_SCHEDULE = Linear(WarmupFraction(0.1))
"""Linear warm-up over a tenth of the steps, then linear decay (Devlin et al., 2018)."""


@dataclass(frozen=True, slots=True)
class FullFineTuning:
    """All weights, as in BERT; optionally with layer-wise learning-rate decay (Sun et al., 2019; ELECTRA)."""

    layer_lr_decay: float = 1.0
    """The learning rate of a layer relative to the layer above it; 1 for the same rate everywhere."""
    name: ClassVar[str] = "full"
    default_lr: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.layer_lr_decay <= 1:
            raise RecipeError(
                f"Layer-wise learning-rate decay must be above 0 and at most 1, found {self.layer_lr_decay}. Correct "
                "--layer-lr-decay."
            )

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """No modules are added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Layer-wise learning-rate decay from the heads down."""
        return ParamLR(self.layer_lr_decay ** (top_level - location.level))


def param_lrs(method: Method, learner: MultiHeadModel) -> ParamLRFn:
    """The learning-rate factor of every parameter by name, after `add_modules`."""
    top = top_level(learner)
    found = {name: method.param_lr(place, top) for name, place in locate_parameters(learner).items()}
    return found.__getitem__


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Trained and total parameters; shared ones are counted once."""

    num_trained: int
    num_total: int

    @property
    def trained_fraction(self) -> float:
        """The fraction of trained parameters."""
        return self.num_trained / self.num_total


def count_trained(learner: MultiHeadModel, method: Method) -> ParameterCounts:
    """Count the parameters of a model after `add_modules`."""
    rates = param_lrs(method, learner)
    sizes = {name: parameter.numel() for name, parameter in learner.named_parameters()}
    return ParameterCounts(sum(size for name, size in sizes.items() if rates(name).is_trained), sum(sizes.values()))
