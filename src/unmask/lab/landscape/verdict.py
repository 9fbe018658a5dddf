"""What two landscapes say about each other: a table, and sentences.

What arrives: a `Landscape`. What leaves: words.
What never happens here: a verdict that only some of the numbers bear. Where they disagree, the sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from unmask.lab.landscape.statistics import (
    DEFAULT_RADIUS,
    MAX_BASIN_RISE,
    NUM_DIRECTIONS,
    RELATIVE_BASIN_RISE,
    has_learned,
    relative_width,
    sharpness_at,
    steps_to,
)
from unmask.reports.landscape_results import DevMetric, Landscape, LandscapeSide

_SAME = 0.05
"""Two widths that differ by less than this part of the larger are the same."""
_WHOSE = {1: "that of the pre-trained run", -1: "that of the run from scratch", 0: "neither"}


def describe_verdict(found: Landscape) -> Iterator[str]:
    """Which basin is wider, in sentences; and what this does not say."""
    idle = [side.name for side in found.sides if not has_learned(side)]
    for name in idle:
        yield (
            f"{_run(name).capitalize()} learned next to nothing: its loss fell by less than {MAX_BASIN_RISE}. "
            "The loss around it is flat and no basin, so widths cannot be compared. Take more epochs or a higher rate."
        )
    cut = [_run(side.name) for side in found.sides if not side.basins[0].closed]
    if not idle:
        yield _describe_wider(found)
    if cut:
        yield f"The basin of {' and that of '.join(cut)} could not be followed to its end: take a wider --span."
    yield "This is one run of each: another seed gives other numbers."


def _describe_wider(found: Landscape) -> str:
    """Three measures: in the run's own unit, as a distance by the norm of the weights, and in random directions."""
    if any(_is_cut_off(found, width) for width in (alpha_width, relative_width)):
        return "Which basin is wider stays open: the narrower one was not measured to its ends."
    signs = {
        "along the line in alpha": _widths(*map(alpha_width, found.sides)),
        "along the line as a distance": _widths(*map(relative_width, found.sides)),
        "in random directions": _rises(*found.sides),
    }
    if len(set(signs.values())) > 1:
        said = ", ".join(f"{where} {_WHOSE[sign]}" for where, sign in signs.items())
        return f"The measures do not agree on a wider basin: {said}."
    sign = signs["in random directions"]
    if not sign:
        return "Both basins are equally wide, by all three measures."
    return f"The wider basin is {_WHOSE[sign]}, by all three measures."


def alpha_width(side: LandscapeSide) -> float:
    """The width of a basin in units of the way from start to end."""
    return side.basins[0].width


def _is_cut_off(found: Landscape, width: Callable[[LandscapeSide], float]) -> bool:
    """Whether the narrower basin may be wider than it seems."""
    return not min(found.sides, key=width).basins[0].closed


def _widths(pretrained: float, scratch: float) -> int:
    """1 where the pre-trained one is wider, -1 where the other is, 0 where they are the same."""
    if abs(pretrained - scratch) <= _SAME * max(pretrained, scratch):
        return 0
    return 1 if pretrained > scratch else -1


def _rises(pretrained: LandscapeSide, scratch: LandscapeSide) -> int:
    """The same for rises, where less is wider; two standard errors of the difference are none."""
    one, other = sharpness_at(pretrained), sharpness_at(scratch)
    if abs(one.mean - other.mean) <= 2 * math.hypot(one.spread, other.spread) / math.sqrt(NUM_DIRECTIONS):
        return 0
    return 1 if one.mean < other.mean else -1


def _run(name: str) -> str:
    return f"the run {name}" if name.startswith("from") else f"the {name} run"


def comparison_rows(found: Landscape) -> Iterator[tuple[str, str, str]]:
    """The figures of both runs beside each other: a name, and a value for each."""
    worse = max(side.end.loss for side in found.sides)
    rows: tuple[tuple[str, Callable[[LandscapeSide], str]], ...] = (
        ("loss at the start", lambda side: f"{side.start.loss:.3f}"),
        ("loss at the end", lambda side: f"{side.end.loss:.3f}"),
        (f"dev {found.judged_by} at the end", lambda side: _format_loss(side, found.judged_by)),
        (f"steps to a loss of {worse:.3f}", lambda side: f"{steps_to(side, worse):.0f}"),
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
    return f"{round(one.mean, 3) + 0.0:.3f} ± {one.spread:.3f}"  # never a minus before zeros
