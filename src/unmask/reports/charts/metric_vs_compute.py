"""Curves against compute: the same numbers over tokens, over time and over operations.

What arrives: traces, one for each run. What leaves: three figures side by side.
What never happens here: a line between two runs. Seeds of a member share a colour, not a line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unmask.reports.charts.curves import Chart, Curve, CurveStyle, XAxis, draw_chart, legend
from unmask.reports.html.elements import Html, tag
from unmask.reports.text.number_format import NumberFormat, tick_labels, ticks

_PREFIXES = ((1e18, "EFLOPs"), (1e15, "PFLOPs"), (1e12, "TFLOPs"), (1e9, "GFLOPs"))
_MINUTES = 180.0
"""Seconds from which on time is given in minutes."""


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One measured value, and what had been spent until then."""

    tokens: float
    seconds: float
    flops: float
    value: float


@dataclass(frozen=True, slots=True)
class ChartLine:
    """The values of one run."""

    name: str
    color: int
    points: tuple[ChartPoint, ...]


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One number of all runs."""

    english: str
    chinese: str
    description: str
    unit: NumberFormat
    lines: tuple[ChartLine, ...]


def draw_panel(panel: ChartPanel) -> Html:
    """The number over tokens, over minutes and over operations."""
    most = max(spot.flops for trace in panel.lines for spot in trace.points)
    scale, name = next((pair for pair in _PREFIXES if most >= pair[0]), (1.0, "FLOPs"))
    longest = max(spot.seconds for trace in panel.lines for spot in trace.points)
    lasting, unit = (60.0, "min") if longest >= _MINUTES else (1.0, "s")
    axes: tuple[tuple[str, NumberFormat, Callable[[ChartPoint], float]], ...] = (
        ("tokens", NumberFormat.COUNT, lambda spot: spot.tokens),
        (unit, NumberFormat.PLAIN, lambda spot: spot.seconds / lasting),
        (name, NumberFormat.PLAIN, lambda spot: spot.flops / scale),
    )
    return tag("div", "charts", *(_draw_chart(panel, axis, kind, place) for axis, kind, place in axes))


def panel_legend(panel: ChartPanel) -> Html:
    """Which colour is whose."""
    return legend([_curve(trace, lambda spot: spot.tokens) for trace in panel.lines])


def _draw_chart(panel: ChartPanel, axis: str, unit: NumberFormat, place: Callable[[ChartPoint], float]) -> Html:
    high = max(place(spot) for trace in panel.lines for spot in trace.points) or 1.0
    at = ticks(0.0, high, 4)
    digits = 0 if unit is NumberFormat.COUNT else 2
    across = XAxis(axis, high, at, tick_labels(at, unit), digits=digits)
    curves = tuple(_curve(trace, place) for trace in panel.lines)
    return draw_chart(Chart(f"{panel.english} by {axis}", panel.description, curves, panel.unit), across)


def _curve(trace: ChartLine, place: Callable[[ChartPoint], float]) -> Curve:
    x = np.array([place(spot) for spot in trace.points], dtype=np.float64)
    y = np.array([spot.value for spot in trace.points], dtype=np.float64)
    return Curve(trace.name, trace.color, CurveStyle.POINTS, x, y)
