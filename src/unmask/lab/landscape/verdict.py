"""Widths of basins, sharpness and speed of two fine-tuning runs, and a summary of them in a table and in sentences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unmask.core.records import Doubles
from unmask.reports.landscape_results import Basin, DevMetric, Landscape, LandscapeSide, LossLine, LossRise

MAX_BASIN_RISE = 0.1
"""The bound of a basin above its minimum, in units of the loss."""
RELATIVE_BASIN_RISE = 0.1
"""The same, as a fraction of the difference to the start."""
RADII = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Distances from the end at which the rise is measured, relative to the norm of the weights."""
DEFAULT_RADIUS = 0.5
"""The radius at which two runs are compared."""
NUM_DIRECTIONS = 6
"""Random directions per radius."""
_SAME = 0.05
"""Widths with a smaller relative difference count as equal."""
_WHOSE = {1: "that of the pre-trained run", -1: "that of the run from scratch", 0: "neither"}


def find_basin(line: LossLine, rise: float) -> Basin:
    """The interval around the minimum of a line where the loss is less than `rise` above it."""
    alpha, loss = np.array(line.alpha), np.array([height.loss for height in line.height])
    lowest = int(np.nanargmin(loss))
    bound = float(loss[lowest]) + rise
    low, low_found = _edge(alpha[lowest::-1], loss[lowest::-1], bound)
    high, high_found = _edge(alpha[lowest:], loss[lowest:], bound)
    return Basin(bound, low, high, low_found and high_found)


def _edge(alpha: Doubles, loss: Doubles, bound: float) -> tuple[float, bool]:
    """The first crossing of the bound by linear interpolation and True, or the last point and False."""
    above = np.flatnonzero(~(loss < bound))
    if not len(above):
        return float(alpha[-1]), False
    there = int(above[0])
    step = (bound - loss[there - 1]) / (loss[there] - loss[there - 1]) if np.isfinite(loss[there]) else 0.0
    return float(alpha[there - 1] + step * (alpha[there] - alpha[there - 1])), True


def sharpness(radius: float, losses: Sequence[float], end: float) -> LossRise:
    """The mean rise of the loss over directions."""
    rises = [loss - end for loss in losses]
    return LossRise(radius, statistics.fmean(rises), statistics.stdev(rises) if len(rises) > 1 else 0.0)


def sharpness_at(side: LandscapeSide, radius: float = DEFAULT_RADIUS) -> LossRise:
    """The rise at a measured radius."""
    return next(one for one in side.rises if one.radius == radius)


def steps_to(side: LandscapeSide, loss: float) -> float:
    """The number of steps to a loss on the fixed rows, by linear interpolation; NaN if never reached."""
    steps, losses = side.training.eval_step, [height.loss for height in side.training.evals]
    for number, found in enumerate(losses):
        if found <= loss:
            if not number:
                return float(steps[0])
            before, gap = losses[number - 1], steps[number] - steps[number - 1]
            return float(steps[number - 1] + gap * (before - loss) / (before - found))
    return float("nan")


def has_learned(side: LandscapeSide) -> bool:
    """Whether the loss of a run fell by more than the bound of a basin."""
    return side.start.loss - side.end.loss > MAX_BASIN_RISE


def relative_width(side: LandscapeSide) -> float:
    """The width of the basin relative to the norm of the weights."""
    return side.basins[0].width * side.moved / side.norm


def describe_verdict(found: Landscape) -> Iterator[str]:
    """Which basin is wider, in sentences, and the limits of the measurement."""
    flat = [side.name for side in found.sides if not has_learned(side)]
    for name in flat:
        yield (
            f"{_run(name).capitalize()} learned next to nothing: its loss fell by less than {MAX_BASIN_RISE}. "
            "The loss around it is flat and no basin, so widths cannot be compared. Take more epochs or a higher --lr."
        )
    cut = [_run(side.name) for side in found.sides if not side.basins[0].closed]
    if not flat:
        yield _describe_wider(found)
    if cut:
        yield f"The basin of {' and that of '.join(cut)} could not be followed to its end: take a wider --span."
    yield "This is one run of each: another seed gives other numbers."


def _describe_wider(found: Landscape) -> str:
    """The widths by three measures: in units of the run, relative to the norm of the weights, in random directions."""
    if any(_is_cut_off(found, width) for width in (alpha_width, relative_width)):
        return "Which basin is wider stays open: the narrower one was not measured to its ends."
    signs = {
        "along the line in alpha": _widths(*map(alpha_width, found.sides)),
        "along the line as a distance": _widths(*map(relative_width, found.sides)),
        "in random directions": _rises(*found.sides),
    }
    if len(set(signs.values())) > 1:
        details = ", ".join(f"{where} {_WHOSE[sign]}" for where, sign in signs.items())
        return f"The measures do not agree on a wider basin: {details}."
    sign = signs["in random directions"]
    if not sign:
        return "Both basins are equally wide, by all three measures."
    return f"The wider basin is {_WHOSE[sign]}, by all three measures."


def alpha_width(side: LandscapeSide) -> float:
    """The width of the basin in units of the distance from start to end."""
    return side.basins[0].width


def _is_cut_off(found: Landscape, width: Callable[[LandscapeSide], float]) -> bool:
    """Whether the narrower basin was cut off by the measured range."""
    return not min(found.sides, key=width).basins[0].closed


def _widths(pretrained: float, scratch: float) -> int:
    """1 if the pre-trained one is wider, -1 if the other is, 0 if they are equal."""
    if abs(pretrained - scratch) <= _SAME * max(pretrained, scratch):
        return 0
    return 1 if pretrained > scratch else -1


def _rises(pretrained: LandscapeSide, scratch: LandscapeSide) -> int:
    """The same for rises, where less is wider; up to two standard errors count as equal."""
    one, other = sharpness_at(pretrained), sharpness_at(scratch)
    if abs(one.mean - other.mean) <= 2 * math.hypot(one.spread, other.spread) / math.sqrt(NUM_DIRECTIONS):
        return 0
    return 1 if one.mean < other.mean else -1


def _run(name: str) -> str:
    return f"the run {name}" if name.startswith("from") else f"the {name} run"


def comparison_rows(found: Landscape) -> Iterator[tuple[str, str, str]]:
    """The table of both runs: a name and a value for each."""
    higher = max(side.end.loss for side in found.sides)
    rows: tuple[tuple[str, Callable[[LandscapeSide], str]], ...] = (
        ("loss at the start", lambda side: f"{side.start.loss:.3f}"),
        ("loss at the end", lambda side: f"{side.end.loss:.3f}"),
        (f"dev {found.judged_by} at the end", lambda side: _format_loss(side, found.judged_by)),
        (f"steps to a loss of {higher:.3f}", lambda side: f"{steps_to(side, higher):.0f}"),
        ("distance moved / norm of weights", lambda side: f"{side.moved / side.norm:.3f}"),
        (f"width of the basin in alpha, to loss + {MAX_BASIN_RISE}", lambda side: _width(side, 0, 1.0)),
        ("same basin / norm of weights", lambda side: _width(side, 0, side.moved / side.norm)),
        (f"width in alpha, to {RELATIVE_BASIN_RISE:.0%} of the fall", lambda side: _width(side, 1, 1.0)),
        (f"rise at a random distance of {DEFAULT_RADIUS} norms", _rise),
    )
    one, other = found.sides
    return ((name, tell(one), tell(other)) for name, tell in rows)


def _format_loss(side: LandscapeSide, by: DevMetric) -> str:
    value = side.end.dev_value(by)
    return f"{100 * value:.1f} %" if by is DevMetric.ERROR else f"{value:.3f}"


def _width(side: LandscapeSide, number: int, unit: float) -> str:
    one = side.basins[number]
    return f"{'' if one.closed else '>= '}{one.width * unit:.3f}"


def _rise(side: LandscapeSide) -> str:
    one = sharpness_at(side)
    return f"{round(one.mean, 3) + 0.0:.3f} ± {one.spread:.3f}"  # no negative zero
