"""Budgets of a run (steps, tokens, hours), and the learning-rate schedule over the used share of a budget.

A schedule is a function of that share, so one recipe fits any budget, and a resumed run has the rates of one that was
never stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from unmask.config.optim import (
    Constant,
    Cosine,
    DecayFrom,
    InverseSqrt,
    Linear,
    Schedule,
    SlantedTriangular,
    Warmup,
    WarmupFraction,
)
from unmask.core.errors import RecipeError


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come. With the weights and the optimizer's memory, this is all that a resume needs."""

    step: int = 0
    """Steps that are finished."""
    tokens: int = 0
    """Tokens that were learned from, over all processes."""
    seconds: float = 0.0
    """Time spent, that before a resume included."""


@dataclass(frozen=True, slots=True)
class StepBudget:
    """A number of steps."""

    count: int
    unit: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        _require(self.count >= 1, f"at least one step, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.step / self.count

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:,} step{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """A number of tokens."""

    count: int
    unit: ClassVar[str] = "tokens"

    def __post_init__(self) -> None:
        _require(self.count >= 1, f"at least one token, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.tokens / self.count

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:,} token{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A time on the clock, validation and saving included, the start of the program not."""

    count: float
    unit: ClassVar[str] = "hours"

    def __post_init__(self) -> None:
        _require(0 < self.count < float("inf"), f"a positive number of hours, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.seconds / (3600 * self.count)

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:g} hour{'s' * (self.count != 1)}"


Budget: TypeAlias = StepBudget | TokenBudget | TimeBudget


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise RecipeError(f"A budget needs {what}.")


def at_step(schedule: Schedule, step: int, total: int) -> float:
    """The multiplier of the rate in a run of `total` steps."""
    assert total > 0, "a run has at least one step"
    return lr_multiplier(schedule, step, step / total)


def at_time(schedule: Schedule, step: int, spent: float, allowed: float) -> float:
    """The multiplier of the rate in a run that may take `allowed` seconds, of which `spent` are over."""
    assert allowed > 0, "a run has some time"
    return lr_multiplier(schedule, step, spent / allowed)


def lr_multiplier(schedule: Schedule, step: int, progress: float) -> float:
    """The part of the full rate after `step` finished steps, when this share of the budget is used up."""
    progress = min(max(progress, 0.0), 1.0)
    if isinstance(schedule, SlantedTriangular):
        return _slanted(schedule, progress)
    warm = _warmup_fraction(schedule.warmup, step, progress)
    return warm if warm < 1 else _after_warmup(schedule, step, progress)


def _warmup_fraction(warmup: Warmup, step: int, progress: float) -> float:
    """How much of the warm-up is over; 1 from its end on."""
    done, whole = (progress, warmup.fraction) if isinstance(warmup, WarmupFraction) else (step, warmup.num_steps)
    return 1.0 if done >= whole else done / whole


def _after_warmup(schedule: Linear | Cosine | InverseSqrt | Constant, step: int, progress: float) -> float:
    """The multiplier once the warm-up is over."""
    peak = _warmup_end(schedule.warmup, step, progress)
    match schedule:
        case Linear(end_factor=end, decay_from=origin):
            return _interpolate(
                end, 1 - (progress if origin is DecayFrom.START else _fraction_since_peak(peak, progress))
            )
        case Cosine(end_factor=end):
            return _interpolate(end, (1 + math.cos(math.pi * _fraction_since_peak(peak, progress))) / 2)
        case InverseSqrt():
            return math.sqrt(peak / progress) if progress > peak else 1.0
        case Constant():
            return 1.0


def _warmup_end(warmup: Warmup, step: int, progress: float) -> float:
    """The share of the budget that was used up when the warm-up ended.

    Where the warm-up is counted in steps and the budget in time, steps are taken to have lasted equally long so far.
    That needs no memory, is continuous at the end of the warm-up, and is exact for a budget in steps.
    """
    if isinstance(warmup, WarmupFraction):
        return warmup.fraction
    return progress * (warmup.num_steps / step) if step else 0.0


def _fraction_since_peak(peak: float, progress: float) -> float:
    """How much of the way from the peak to the end is over. After a warm-up that fills the budget there is no fall."""
    return (progress - peak) / (1 - peak) if peak < 1 else 0.0


def _interpolate(end: float, high: float) -> float:
    return end + (1 - end) * high


def _slanted(schedule: SlantedTriangular, progress: float) -> float:
    """The triangle of ULMFiT.

    The paper rounds the turning point down to a whole step, which makes the last rates of short runs negative. Here it
    stays where `rise` puts it; the two agree where rise * total is whole.
    """
    rise = schedule.cut_frac
    height = progress / rise if progress < rise else 1 - (progress - rise) / (1 - rise)
    return (1 + height * (schedule.ratio - 1)) / schedule.ratio
