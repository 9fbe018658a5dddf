"""Line charts: curves in an SVG that stretches, with ticks and labels around it that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from markupsafe import Markup

from unmask.reports.charts.svg import SIDE, figure, label_at, svg
from unmask.reports.html import EMPTY, join
from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import NumberFormat, tick_labels, ticks

NUM_COLORS = 6
"""The number of colors of the style sheet; further curves repeat them with dashes."""
_TRIM = 0.5
"""Percent of the values of a raw curve at either end that may lie outside of the chart."""
_FLOPS_PREFIXES = ((1e18, "EFLOPs"), (1e15, "PFLOPs"), (1e12, "TFLOPs"), (1e9, "GFLOPs"))
_MINUTES_FROM = 180.0
"""Seconds from which on a time axis is in minutes."""


class CurveStyle(StrEnum):
    """How a curve is drawn, from the background to the foreground."""

    RAW = "raw"
    """Faint."""
    LINE = "line"
    POINTS = "points"
    """A thin line with a dot at each value, for a few separate measurements."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A named curve. Curves with the same name and style share an entry of the legend."""

    name: str
    color: int
    style: CurveStyle
    x: Reals
    y: Reals

    @property
    def css(self) -> str:
        """The classes of its color."""
        return f"c{self.color % NUM_COLORS}" + (" dashed" if self.color >= NUM_COLORS else "")


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """A vertical line; without a label it is explained in the legend."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class XAxis:
    """The horizontal axis: its name, its ticks, and optionally a second line of labels."""

    name: str
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    second_labels: tuple[str, ...] = ()
    second_name: str = ""
    low: float = 0.0
    digits: int = 0
    """Decimals of a value under the pointer."""

    def to_picture(self, value: float) -> float:
        """The coordinate of a value."""
        return SIDE * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves of one quantity with a title and a description."""

    title: str
    description: str
    curves: tuple[Curve, ...]
    unit: NumberFormat = NumberFormat.PLAIN
    from_zero: bool = False


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One measured value, with the compute spent until then."""

    tokens: float
    seconds: float
    flops: float
    value: float


@dataclass(frozen=True, slots=True)
class ChartLine:
    """The values of one run. Seeds of a member have one color and several lines."""

    name: str
    color: int
    points: tuple[ChartPoint, ...]


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One quantity of all runs against compute."""

    english: str
    chinese: str
    description: str
    unit: NumberFormat
    lines: tuple[ChartLine, ...]


def draw_chart(chart: Chart, axis: XAxis, events: Sequence[ChartEvent] = ()) -> Markup:
    """The chart as a figure. Attributes of the image give the script the scale of its values."""
    low, high = bounds(chart)
    values = ticks(low, high, 4)
    heights = [SIDE - SIDE * (value - low) / (high - low) for value in values]
    body = [Markup('<path class="rule" d="M0 {:.0f}H{}"/>').format(y, SIDE) for y in heights]
    body += [_event_line(event, axis) for event in events]
    body += [_path(curve, axis, low, high) for curve in _back_to_front(chart.curves)]
    scale = Markup(
        'viewBox="0 0 {0} {0}" preserveAspectRatio="none" data-across="{1:.8g}" data-low="{2:.8g}" data-high="{3:.8g}" '
        'data-unit="{4}" data-axis="{5}" data-begin="{6:.8g}" data-digits="{7}"'
    ).format(SIDE, axis.high, low, high, chart.unit, axis.name, axis.low, axis.digits)
    positions = [axis.to_picture(value) for value in axis.ticks]
    below = [(axis.name, _labels("left", positions, axis.labels))]
    if axis.second_labels:
        below.append((axis.second_name, _labels("left", positions, axis.second_labels)))
    up = _labels("top", heights, tick_labels(values, chart.unit))
    labels = [label_at("left", axis.to_picture(event.x), event.label) for event in events if event.label]
    image = svg("curves", f"{chart.title}, by {axis.name}", body, scale)
    return figure(chart.title, chart.description, image, up, below, labels)


def bounds(chart: Chart) -> tuple[float, float]:
    """The range of the vertical axis: all values, except the extremes of raw curves."""
    values = [c.y if c.style is not CurveStyle.RAW else np.percentile(c.y, [_TRIM, 100 - _TRIM]) for c in chart.curves]
    flat = np.concatenate(values)
    low, high = float(flat.min()), float(flat.max())
    if chart.from_zero:
        low = min(low, 0.0)
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low if chart.from_zero else low - margin), high + margin


def steps_axis(high: float, second_labels: Sequence[str] = ()) -> XAxis:
    """An axis of steps. The second labels belong to the ticks of `ticks(0, high, 5)`."""
    at = ticks(0.0, max(high, 1.0), 5)
    return XAxis("steps", max(high, 1.0), at, tick_labels(at, NumberFormat.COUNT), tuple(second_labels), "tokens")


def plain_axis(name: str, low: float, high: float, num_ticks: int) -> XAxis:
    """An axis of plain numbers."""
    at = ticks(low, high, num_ticks)
    return XAxis(name, high, at, tick_labels(at, NumberFormat.PLAIN), low=low, digits=2)


def legend(curves: Sequence[Curve], extra: Sequence[str] = ()) -> Markup:
    """The names of the curves, each once, then the meanings of vertical lines."""
    named = {(curve.name, curve.style): curve for curve in curves}
    keys = [(f"{curve.style} {curve.css}", curve.name) for curve in _back_to_front(named.values())]
    keys += [("upright", words) for words in extra]
    entries = join(Markup('<span><i class="key {}"></i>{}</span>').format(css, words) for css, words in keys)
    return Markup('<div class="legend">{}</div>').format(entries) if keys else EMPTY


def draw_panel(panel: ChartPanel) -> Markup:
    """The quantity over tokens, over time and over FLOPs."""
    points = [point for line in panel.lines for point in line.points]
    max_flops, max_seconds = max(point.flops for point in points), max(point.seconds for point in points)
    flops_scale, flops_name = next((pair for pair in _FLOPS_PREFIXES if max_flops >= pair[0]), (1.0, "FLOPs"))
    time_scale, time_name = (60.0, "min") if max_seconds >= _MINUTES_FROM else (1.0, "s")
    axes: tuple[tuple[str, NumberFormat, Callable[[ChartPoint], float]], ...] = (
        ("tokens", NumberFormat.COUNT, lambda point: point.tokens),
        (time_name, NumberFormat.PLAIN, lambda point: point.seconds / time_scale),
        (flops_name, NumberFormat.PLAIN, lambda point: point.flops / flops_scale),
    )
    return join(_draw_over(panel, name, unit, x_of) for name, unit, x_of in axes)


def panel_legend(panel: ChartPanel) -> Markup:
    """The colors of the members."""
    return legend([_panel_curve(line, lambda point: point.tokens) for line in panel.lines])


def _draw_over(panel: ChartPanel, name: str, unit: NumberFormat, x_of: Callable[[ChartPoint], float]) -> Markup:
    high = max(x_of(point) for line in panel.lines for point in line.points) or 1.0
    at = ticks(0.0, high, 4)
    axis = XAxis(name, high, at, tick_labels(at, unit), digits=0 if unit is NumberFormat.COUNT else 2)
    curves = tuple(_panel_curve(line, x_of) for line in panel.lines)
    return draw_chart(Chart(f"{panel.english} by {name}", panel.description, curves, panel.unit), axis)


def _panel_curve(line: ChartLine, x_of: Callable[[ChartPoint], float]) -> Curve:
    x = np.array([x_of(point) for point in line.points], dtype=np.float64)
    y = np.array([point.value for point in line.points], dtype=np.float64)
    return Curve(line.name, line.color, CurveStyle.POINTS, x, y)


def _back_to_front(curves: Iterable[Curve]) -> list[Curve]:
    return sorted(curves, key=lambda curve: list(CurveStyle).index(curve.style))


def _path(curve: Curve, axis: XAxis, low: float, high: float) -> Markup:
    """The line; points also get dots, as lines of length zero, which stretching leaves round."""
    x = map(axis.to_picture, curve.x.tolist())
    y = SIDE - SIDE * (np.clip(curve.y, low, high) - low) / (high - low)
    positions = [f"{a:.0f} {b:.1f}" for a, b in zip(x, y.tolist(), strict=True)]
    name = Markup(' data-name="{}"').format(curve.name) if curve.style is not CurveStyle.RAW else EMPTY
    line = Markup('<path class="{} {}"{} d="M{}"/>').format(curve.style, curve.css, name, " ".join(positions))
    if curve.style is not CurveStyle.POINTS:
        return line
    dots = "".join(f"M{position}h0" for position in positions)
    return line + Markup('<path class="dots {}" d="{}"/>').format(curve.css, dots)


def _labels(edge: str, positions: Sequence[float], labels: Sequence[str]) -> list[Markup]:
    return [label_at(edge, position, label) for position, label in zip(positions, labels, strict=True)]


def _event_line(event: ChartEvent, axis: XAxis) -> Markup:
    css = "change" if event.label else "mark"
    return Markup('<path class="{}" d="M{:.0f} 0V{}"/>').format(css, axis.to_picture(event.x), SIDE)
