"""What part of the full learning rate a step takes: pure functions of how far a run has come.

What arrives: a schedule, the number of finished steps, and the share of the budget that is used up.
What leaves: one number between 0 and 1. What never happens here: looking at a clock, or keeping state.

The share is the only measure of progress. In a run bound by steps it is step / total (`at_step`). In a run bound by
time it is the seconds spent over the seconds allowed, those before a resume included (`at_time`): the rate then reaches
its end when the time is over, however fast the machine turned out to be.

A step is numbered by the steps finished before it: the first is step 0 and, in a warm-up, takes the rate 0, as in BERT.
"""

from __future__ import annotations

import math

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
