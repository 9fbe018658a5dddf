"""A surface as a map: bands of height, the way of a run across them, and a scale.

What arrives: a `Map`, and the levels that all maps of a row share. What leaves: figures for any width.
What never happens here: colours. The page's style decides them. A band means the same on both maps of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unmask.reports.charts.contours import MAX_LEVELS, Loop, contour_levels, contour_outlines
from unmask.reports.html.elements import EMPTY, Html, span, tag, text
from unmask.reports.landscape_results import Directions, LossMap, LossPoint
from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import NumberFormat, tick_labels, ticks

_SIDE = 1000
_TRIM = 97
"""Percent of the places that the scale reaches up to; what is higher lies in the last band."""


@dataclass(frozen=True, slots=True)
class ColorScale:
    """What the bands of a row of maps mean."""

    name: str
    levels: tuple[float, ...]
    unit: NumberFormat
    height: Callable[[LossPoint], float]

    def heights_of(self, one: LossMap) -> Reals:
        """The heights of a map; what is not a number is high."""
        found = np.array([[self.height(height) for height in row] for row in one.height], dtype=np.float64)
        return np.nan_to_num(found, nan=np.inf, posinf=1e9)

    def band_class(self, number: int) -> str:
        """The class of a band: colours are spread over all bands, however many there are."""
        return f"b{round(number * MAX_LEVELS / max(len(self.levels), 1))}"


def common_scale(
    name: str, maps: Sequence[LossMap], unit: NumberFormat, height: Callable[[LossPoint], float]
) -> ColorScale:
    """Levels for several maps together."""
    bare = ColorScale(name, (), unit, height)
    values = np.concatenate([bare.heights_of(one).ravel() for one in maps])
    low, high = float(values.min()), float(np.percentile(values, _TRIM))
    return ColorScale(name, contour_levels(low, high, unit is not NumberFormat.SHARE), unit, height)


def draw_map(one: LossMap, scale: ColorScale, title: str, about: str) -> Html:
    """The whole figure."""
    x, y, z = np.array(one.alpha), np.array(one.beta), scale.heights_of(one)
    across, up = _scaler(x), _scaler(y[::-1])
    bands = [f'<rect class="{scale.band_class(0)}" width="{_SIDE}" height="{_SIDE}"/>']
    for number, level in enumerate(scale.levels, start=1):
        loops = "".join(_path(loop, across, up) for loop in contour_outlines(x, y, z, level))
        bands.append(f'<path class="{scale.band_class(number)}" d="{loops}"/>' if loops else "")
    svg = Html(
        f'<svg class="map" viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(f"{title}: {scale.name}")}">{"".join(bands)}{_trajectory_path(one, across, up)}</svg>'
    )
    caption = tag("figcaption", "", tag("b", "", text(title)), span("soft", f" {about}"))
    side = tag("div", "up", *_ticks(y, "top", up))
    area = tag("div", "area square", svg, *_marks(one, across, up))
    below = Html(span("unit", "") + tag("div", "along", *_ticks(x, "left", across)))
    return tag("figure", "chart", caption, tag("div", "plot", side, area, below))


def draw_color_bar(scale: ColorScale) -> Html:
    """The colours with the heights between them."""
    if not scale.levels:
        return EMPTY
    swatches = [tag("i", scale.band_class(number)) for number in range(len(scale.levels) + 1)]
    words = [f"{100 * level:g} %" if scale.unit is NumberFormat.SHARE else f"{level:g}" for level in scale.levels]
    share = 100 / (len(scale.levels) + 1)
    labels = (Html(f'<span style="left:{share * n:.2f}%">{text(word)}</span>') for n, word in enumerate(words, 1))
    return tag(
        "div", "scale", span("soft", scale.name), tag("div", "swatches", *swatches), tag("div", "marks", *labels)
    )


def _scaler(axis: Reals) -> Callable[[float], float]:
    """From the units of an axis to those of the picture."""
    begin, end = float(axis[0]), float(axis[-1])
    return lambda value: _SIDE * (value - begin) / (end - begin)


def _path(loop: Loop, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    return f"M{' '.join(f'{across(a):.1f} {up(b):.1f}' for a, b in loop)}Z"


def _trajectory_path(one: LossMap, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    """The way of a run, with a dot wherever weights were kept; under it a wider one, so that it shows on any ground."""
    if not one.trajectory:
        return ""
    places = [f"{across(a):.1f} {up(b):.1f}" for a, b in one.trajectory]
    line, dots = f"M{' '.join(places)}", "".join(f"M{place}h0" for place in places)
    return "".join(f'<path class="{css}" d="{d}"/>' for css, d in (("under", line), ("way", line), ("dots", dots)))


def _marks(one: LossMap, across: Callable[[float], float], up: Callable[[float], float]) -> list[Html]:
    """Start and ends by their names."""
    ends = [("end", (0.0, 0.0))]
    if one.directions is Directions.RUNS:
        ends = [("start", (0.0, 0.0)), ("end", (1.0, 0.0)), ("second run", one.second)]
    found = []
    for name, (alpha, beta) in ends:
        left, top = across(alpha) / _SIDE, up(beta) / _SIDE
        if 0 <= left <= 1 and 0 <= top <= 1:
            place = f"left:{100 * left:.2f}%;top:{100 * top:.2f}%"
            found.append(Html(f'<b class="spot" style="{place}"><span>{text(name)}</span></b>'))
    return found


def _ticks(axis: Reals, edge: str, place: Callable[[float], float]) -> list[Html]:
    at = ticks(float(axis[0]), float(axis[-1]), 4)
    shown = zip(at, tick_labels(at, NumberFormat.PLAIN), strict=True)
    return [
        Html(f'<span style="{edge}:{100 * place(value) / _SIDE:.2f}%">{text(label)}</span>') for value, label in shown
    ]
