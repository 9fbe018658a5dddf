"""How wide a basin is and how fast a run came down, in numbers.

What arrives: heights along a line, around an end and along a run. What leaves: widths, rises and steps.
What never happens here: a width that hides that it was cut off. A basin knows whether both of its ends were found.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from unmask.core.records import Doubles
from unmask.reports.landscape_results import Basin, LandscapeSide, LossLine, LossRise

MAX_BASIN_RISE = 0.1
"""The bound of a basin above its lowest place, in units of the loss."""
RELATIVE_BASIN_RISE = 0.1
"""The same, as a part of the way up to the start."""
RADII = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Distances from the end at which the rise is measured, as parts of the norm of the weights."""
DEFAULT_RADIUS = 0.5
"""The one that two runs are compared by."""
NUM_DIRECTIONS = 6
"""Random directions at each radius."""


def find_basin(ridge: LossLine, rise: float) -> Basin:
    """The stretch around the lowest place of a line where the loss is less than `rise` above it."""
    alpha, loss = np.array(ridge.alpha), np.array([height.loss for height in ridge.height])
    lowest = int(np.nanargmin(loss))
    bound = float(loss[lowest]) + rise
    low, low_found = _edge(alpha[lowest::-1], loss[lowest::-1], bound)
    high, high_found = _edge(alpha[lowest:], loss[lowest:], bound)
    return Basin(bound, low, high, low_found and high_found)


def _edge(alpha: Doubles, loss: Doubles, bound: float) -> tuple[float, bool]:
    """Where a line that begins below a bound first reaches it, by straight lines between places; or its last place."""
    above = np.flatnonzero(~(loss < bound))
    if not len(above):
        return float(alpha[-1]), False
    there = int(above[0])
    step = (bound - loss[there - 1]) / (loss[there] - loss[there - 1]) if np.isfinite(loss[there]) else 0.0
    return float(alpha[there - 1] + step * (alpha[there] - alpha[there - 1])), True


def sharpness(radius: float, losses: Sequence[float], end: float) -> LossRise:
    """The mean rise over some directions."""
    rises = [loss - end for loss in losses]
    return LossRise(radius, statistics.fmean(rises), statistics.stdev(rises) if len(rises) > 1 else 0.0)


def sharpness_at(side: LandscapeSide, radius: float = DEFAULT_RADIUS) -> LossRise:
    """The rise at a radius that was measured."""
    return next(one for one in side.rises if one.radius == radius)


def steps_to(side: LandscapeSide, loss: float) -> float:
    """After how many steps the loss on the fixed rows first was so low, by straight lines; not a number if never."""
    steps, losses = side.training.eval_step, [height.loss for height in side.training.evals]
    for number, found in enumerate(losses):
        if found <= loss:
            if not number:
                return float(steps[0])
            before, gap = losses[number - 1], steps[number] - steps[number - 1]
            return float(steps[number - 1] + gap * (before - loss) / (before - found))
    return float("nan")


def has_learned(side: LandscapeSide) -> bool:
    """Whether a run went down at all: the ground around one that did not is flat, and no basin."""
    return side.start.loss - side.end.loss > MAX_BASIN_RISE


def relative_width(side: LandscapeSide) -> float:
    """The width of a basin as a part of the norm of the weights."""
    return side.basins[0].width * side.moved / side.norm
