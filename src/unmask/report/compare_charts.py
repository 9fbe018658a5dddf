"""Curves against compute: the same numbers over tokens, over time and over operations.

What arrives: traces, one for each run. What leaves: three figures side by side.
What never happens here: a line between two runs. Seeds of a member share a colour, not a line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unmask.report.curve_svg import Across, Chart, Curve, Look, draw, legend
from unmask.report.figures import Unit, tick_labels, ticks
from unmask.report.markup import Html, tag

_PREFIXES = ((1e18, "EFLOPs"), (1e15, "PFLOPs"), (1e12, "TFLOPs"), (1e9, "GFLOPs"))
_MINUTES = 180.0
"""Seconds from which on time is given in minutes."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One measured value, and what had been spent until then."""

    tokens: float
    seconds: float
    flops: float
    value: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The values of one run."""

    name: str
    colour: int
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One number of all runs."""

    english: str
    chinese: str
    about: str
    unit: Unit
    traces: tuple[Trace, ...]


def pictures(panel: Panel) -> Html:
    """The number over tokens, over minutes and over operations."""
    most = max(spot.flops for trace in panel.traces for spot in trace.spots)
    scale, name = next((pair for pair in _PREFIXES if most >= pair[0]), (1.0, "FLOPs"))
    longest = max(spot.seconds for trace in panel.traces for spot in trace.spots)
    lasting, unit = (60.0, "min") if longest >= _MINUTES else (1.0, "s")
    axes: tuple[tuple[str, Unit, Callable[[Spot], float]], ...] = (
        ("tokens", Unit.COUNT, lambda spot: spot.tokens),
        (unit, Unit.PLAIN, lambda spot: spot.seconds / lasting),
        (name, Unit.PLAIN, lambda spot: spot.flops / scale),
    )
    return tag("div", "charts", *(_picture(panel, axis, kind, place) for axis, kind, place in axes))


def legend_of(panel: Panel) -> Html:
    """Which colour is whose."""
    return legend([_curve(trace, lambda spot: spot.tokens) for trace in panel.traces])


def _picture(panel: Panel, axis: str, unit: Unit, place: Callable[[Spot], float]) -> Html:
    high = max(place(spot) for trace in panel.traces for spot in trace.spots) or 1.0
    at = ticks(0.0, high, 4)
    digits = 0 if unit is Unit.COUNT else 2
    across = Across(axis, high, at, tick_labels(at, unit), digits=digits)
    curves = tuple(_curve(trace, place) for trace in panel.traces)
    return draw(Chart(f"{panel.english} by {axis}", panel.about, curves, panel.unit), across)


def _curve(trace: Trace, place: Callable[[Spot], float]) -> Curve:
    x = np.array([place(spot) for spot in trace.spots], dtype=np.float64)
    y = np.array([spot.value for spot in trace.spots], dtype=np.float64)
    return Curve(trace.name, trace.colour, Look.POINTS, x, y)
