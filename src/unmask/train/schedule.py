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

from unmask.optimising import Constant, Cosine, InverseRoot, Linear, Origin, Schedule, Slanted, Warmup, WarmupShare


def at_step(schedule: Schedule, step: int, total: int) -> float:
    """The multiplier of the rate in a run of `total` steps."""
    assert total > 0, "a run has at least one step"
    return multiplier(schedule, step, step / total)


def at_time(schedule: Schedule, step: int, spent: float, allowed: float) -> float:
    """The multiplier of the rate in a run that may take `allowed` seconds, of which `spent` are over."""
    assert allowed > 0, "a run has some time"
    return multiplier(schedule, step, spent / allowed)


def multiplier(schedule: Schedule, step: int, share: float) -> float:
    """The part of the full rate after `step` finished steps, when this share of the budget is used up."""
    share = min(max(share, 0.0), 1.0)
    if isinstance(schedule, Slanted):
        return _slanted(schedule, share)
    warm = _warmth(schedule.warmup, step, share)
    return warm if warm < 1 else _after(schedule, step, share)


def _warmth(warmup: Warmup, step: int, share: float) -> float:
    """How much of the warm-up is over; 1 from its end on."""
    done, whole = (share, warmup.share) if isinstance(warmup, WarmupShare) else (step, warmup.count)
    return 1.0 if done >= whole else done / whole


def _after(schedule: Linear | Cosine | InverseRoot | Constant, step: int, share: float) -> float:
    """The multiplier once the warm-up is over."""
    peak = _peak(schedule.warmup, step, share)
    match schedule:
        case Linear(end=end, origin=origin):
            return _mix(end, 1 - (share if origin is Origin.START else _since(peak, share)))
        case Cosine(end=end):
            return _mix(end, (1 + math.cos(math.pi * _since(peak, share))) / 2)
        case InverseRoot():
            return math.sqrt(peak / share) if share > peak else 1.0
        case Constant():
            return 1.0


def _peak(warmup: Warmup, step: int, share: float) -> float:
    """The share of the budget that was used up when the warm-up ended.

    Where the warm-up is counted in steps and the budget in time, steps are taken to have lasted equally long so far.
    That needs no memory, is continuous at the end of the warm-up, and is exact for a budget in steps.
    """
    if isinstance(warmup, WarmupShare):
        return warmup.share
    return share * (warmup.count / step) if step else 0.0


def _since(peak: float, share: float) -> float:
    """How much of the way from the peak to the end is over. After a warm-up that fills the budget there is no fall."""
    return (share - peak) / (1 - peak) if peak < 1 else 0.0


def _mix(end: float, high: float) -> float:
    return end + (1 - end) * high


def _slanted(schedule: Slanted, share: float) -> float:
    """The triangle of ULMFiT.

    The paper rounds the turning point down to a whole step, which makes the last rates of short runs negative. Here it
    stays where `rise` puts it; the two agree where rise * total is whole.
    """
    rise = schedule.rise
    height = share / rise if share < rise else 1 - (share - rise) / (1 - rise)
    return (1 + height * (schedule.ratio - 1)) / schedule.ratio
