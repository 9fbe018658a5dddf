"""Curves as a picture: lines in an SVG that stretches, and words around it that do not.

What arrives: curves with their names, colours and looks. What leaves: a figure with round ticks, for any width.
What never happens here: colours or sizes. The page's style decides them, for light and dark, for phones and desks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from unmask.reports.html.elements import EMPTY, Html, span, tag, text
from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import NumberFormat, tick_labels, ticks

NUM_COLORS = 6
"""How many colours the style has; a further curve takes the first again, and is dashed."""
_SIDE = 1000
_TRIM = 0.5
"""Percent of a raw line's values, at either end, that may lie outside of the picture."""


class CurveStyle(StrEnum):
    """How a curve is drawn."""

    RAW = "raw"
    """Faint, behind everything."""
    LINE = "line"
    POINTS = "points"
    """A thin line with a dot at each value: few values, each of them measured on its own."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line. Curves of one name share an entry of the legend."""

    name: str
    color: int
    style: CurveStyle
    x: Reals
    y: Reals


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """Something that happened at one place of the horizontal axis; without words it is explained by the legend."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class XAxis:
    """The horizontal axis: what it counts, its ticks, and a second line of labels below them, if there is one."""

    name: str
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    second_labels: tuple[str, ...] = ()
    second_name: str = ""
    """What the second line counts."""
    low: float = 0.0
    digits: int = 0
    """How many digits behind the point a place on it is told with."""

    def to_picture(self, value: float) -> float:
        """Where a value lies in the picture."""
        return _SIDE * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: its title, what its numbers mean, and the curves."""

    title: str
    description: str
    curves: tuple[Curve, ...]
    unit: NumberFormat = NumberFormat.PLAIN
    from_zero: bool = False


def draw_chart(chart: Chart, axis: XAxis, events: Sequence[ChartEvent] = ()) -> Html:
    """The whole figure."""
    low, high = bounds(chart)
    at = ticks(low, high, 4)
    up = [_SIDE - _SIDE * (value - low) / (high - low) for value in at]
    right = [axis.to_picture(value) for value in axis.ticks]
    lines = "".join(f'<path class="rule" d="M0 {y:.0f}H{_SIDE}"/>' for y in up)
    lines += "".join(_event_line(event, axis) for event in events)
    lines += "".join(_paths(curve, axis, low, high) for curve in _back_to_front(chart.curves))
    scale = f'data-across="{axis.high:.8g}" data-low="{low:.8g}" data-high="{high:.8g}" data-unit="{chart.unit}"'
    scale += f' data-axis="{axis.name}" data-begin="{axis.low:.8g}" data-digits="{axis.digits}"'
    svg = Html(
        f'<svg class="curves" viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(f"{chart.title}, by {axis.name}")}" {scale}>{lines}</svg>'
    )
    caption = tag("figcaption", "", tag("b", "", text(chart.title)), span("soft", f" {chart.description}"))
    side = tag(
        "div", "up", *(_label_at("top", y, label) for y, label in zip(up, tick_labels(at, chart.unit), strict=True))
    )
    words = (_label_at("left", axis.to_picture(event.x), event.label) for event in events if event.label)
    area = tag("div", "area", svg, *words)
    return tag("figure", "chart", caption, tag("div", "plot", side, area, _axis_labels(axis, right)))


def bounds(chart: Chart) -> tuple[float, float]:
    """The range of the vertical axis: everything that is drawn strongly, and nearly all of what is faint."""
    values = [c.y if c.style is not CurveStyle.RAW else np.percentile(c.y, [_TRIM, 100 - _TRIM]) for c in chart.curves]
    flat = np.concatenate(values)
    low, high = float(flat.min()), float(flat.max())
    if chart.from_zero:
        low = min(low, 0.0)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low if chart.from_zero else low - room), high + room


def steps_axis(high: float, second_labels: Sequence[str] = ()) -> XAxis:
    """An axis of steps. The second line of labels belongs to the ticks that `ticks(0, high, 5)` gives."""
    at = ticks(0.0, max(high, 1.0), 5)
    return XAxis("steps", max(high, 1.0), at, tick_labels(at, NumberFormat.COUNT), tuple(second_labels), "tokens")


def legend(curves: Sequence[Curve], extra: Sequence[str] = ()) -> Html:
    """What the lines mean, each name once; then what the upright lines mean."""
    named = {(curve.name, curve.style): curve for curve in curves}
    keys = [tag("span", "", _key(curve), text(curve.name)) for curve in _back_to_front(named.values())]
    keys += [tag("span", "", tag("i", "key upright"), text(words)) for words in extra]
    return tag("div", "legend", *keys) if keys else EMPTY


def _key(curve: Curve) -> Html:
    return tag("i", f"key {curve.style} {_css(curve)}")


def _css(curve: Curve) -> str:
    return f"c{curve.color % NUM_COLORS}" + (" dashed" if curve.color >= NUM_COLORS else "")


def _back_to_front(curves: Iterable[Curve]) -> list[Curve]:
    return sorted(curves, key=lambda curve: list(CurveStyle).index(curve.style))


def _paths(curve: Curve, across: XAxis, low: float, high: float) -> str:
    """A line; for points also a dot at each value, drawn as a line without length, which stretching leaves round."""
    x = map(across.to_picture, curve.x.tolist())
    y = _SIDE - _SIDE * (np.clip(curve.y, low, high) - low) / (high - low)
    places = [f"{a:.0f} {b:.1f}" for a, b in zip(x, y.tolist(), strict=True)]
    name = f' data-name="{text(curve.name)}"' if curve.style is not CurveStyle.RAW else ""
    line = f'<path class="{curve.style} {_css(curve)}"{name} d="M{" ".join(places)}"/>'
    dots = "".join(f"M{place}h0" for place in places)
    return line + (f'<path class="dots {_css(curve)}" d="{dots}"/>' if curve.style is CurveStyle.POINTS else "")


def _axis_labels(across: XAxis, right: Sequence[float]) -> Html:
    """The labels of the ticks; in the margin before them stands what they count."""
    rows = [span("unit", across.name), tag("div", "along", *_labels(across.labels, right))]
    if across.second_labels:
        rows += [span("unit", across.second_name), tag("div", "along", *_labels(across.second_labels, right))]
    return Html("".join(rows))


def _labels(labels: Sequence[str], right: Sequence[float]) -> Iterator[Html]:
    return (_label_at("left", place, label) for place, label in zip(right, labels, strict=True))


def _event_line(event: ChartEvent, across: XAxis) -> str:
    return f'<path class="{"change" if event.label else "mark"}" d="M{across.to_picture(event.x):.0f} 0V{_SIDE}"/>'


def _label_at(edge: str, place: float, words: str) -> Html:
    """Words at a place along an edge; those at the far end must not stick out."""
    css = ' class="far"' if place > _SIDE * 0.96 else ""
    return Html(f'<span{css} style="{edge}:{100 * place / _SIDE:.2f}%">{text(words)}</span>')
