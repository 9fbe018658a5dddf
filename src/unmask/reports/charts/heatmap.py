"""Loss surfaces as filled contour maps with the trajectory of a run, and their color bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from unmask.reports.charts.contours import MAX_LEVELS, Loop, contour_levels, contour_outlines
from unmask.reports.charts.svg import SIDE, figure, label_at, scale_between, svg
from unmask.reports.html import EMPTY, join
from unmask.reports.landscape_results import Directions, LossMap, LossPoint
from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import NumberFormat, tick_labels, ticks

_TRIM = 97
"""The percentile of the losses at which the scale ends; higher losses are in the last band."""


@dataclass(frozen=True, slots=True)
class ColorScale:
    """The common bands of several maps."""

    name: str
    levels: tuple[float, ...]
    unit: NumberFormat
    height: Callable[[LossPoint], float]

    def heights_of(self, one: LossMap) -> Reals:
        """The heights of a map; NaN counts as infinite."""
        found = np.array([[self.height(point) for point in row] for row in one.height], dtype=np.float64)
        return np.nan_to_num(found, nan=np.inf, posinf=1e9)

    def band_class(self, number: int) -> str:
        """The class of a band; the colors are spread over all bands."""
        return f"b{round(number * MAX_LEVELS / max(len(self.levels), 1))}"


def common_scale(
    name: str, maps: Sequence[LossMap], unit: NumberFormat, height: Callable[[LossPoint], float]
) -> ColorScale:
    """A scale for several maps together."""
    without_levels = ColorScale(name, (), unit, height)
    values = np.concatenate([without_levels.heights_of(one).ravel() for one in maps])
    low, high = float(values.min()), float(np.percentile(values, _TRIM))
    return ColorScale(name, contour_levels(low, high, unit is not NumberFormat.SHARE), unit, height)


def draw_map(one: LossMap, scale: ColorScale, title: str, description: str) -> Markup:
    """The map as a figure."""
    x, y, z = np.array(one.alpha), np.array(one.beta), scale.heights_of(one)
    to_x, to_y = scale_between(float(x[0]), float(x[-1])), scale_between(float(y[-1]), float(y[0]))
    body = [Markup('<rect class="{}" width="{}" height="{}"/>').format(scale.band_class(0), SIDE, SIDE)]
    for number, level in enumerate(scale.levels, start=1):
        loops = "".join(_loop_path(loop, to_x, to_y) for loop in contour_outlines(x, y, z, level))
        body += [Markup('<path class="{}" d="{}"/>').format(scale.band_class(number), loops)] * bool(loops)
    image = svg("map", f"{title}: {scale.name}", [*body, *_trajectory(one, to_x, to_y)])
    up, below = _ticks(y, "top", to_y), [("", _ticks(x, "left", to_x))]
    return figure(title, description, image, up, below, _marks(one, to_x, to_y), "area square")


def draw_color_bar(scale: ColorScale) -> Markup:
    """The colors with the levels between them."""
    if not scale.levels:
        return EMPTY
    num_bands = len(scale.levels) + 1
    swatches = join(Markup('<i class="{}"></i>').format(scale.band_class(n)) for n in range(num_bands))
    words = [f"{100 * level:g} %" if scale.unit is NumberFormat.SHARE else f"{level:g}" for level in scale.levels]
    label = Markup('<span style="left:{:.2f}%">{}</span>')
    labels = join(label.format(100 / num_bands * number, word) for number, word in enumerate(words, 1))
    bar = (
        '<div class="scale"><span class="soft">{}</span><div class="swatches">{}</div><div class="marks">{}</div></div>'
    )
    return Markup(bar).format(scale.name, swatches, labels)


def _loop_path(loop: Loop, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> str:
    return f"M{' '.join(f'{to_x(a):.1f} {to_y(b):.1f}' for a, b in loop)}Z"


def _trajectory(one: LossMap, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> list[Markup]:
    """The trajectory with a dot at each saved step, above a wider line that contrasts with every band."""
    if not one.trajectory:
        return []
    positions = [f"{to_x(a):.1f} {to_y(b):.1f}" for a, b in one.trajectory]
    line, dots = f"M{' '.join(positions)}", "".join(f"M{position}h0" for position in positions)
    paths = (("under", line), ("way", line), ("dots", dots))
    return [Markup('<path class="{}" d="{}"/>').format(css, d) for css, d in paths]


def _marks(one: LossMap, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> list[Markup]:
    """The labelled start and ends."""
    ends = [("end", (0.0, 0.0))]
    if one.directions is Directions.RUNS:
        ends = [("start", (0.0, 0.0)), ("end", (1.0, 0.0)), ("second run", one.second)]
    mark = Markup('<b class="spot" style="left:{:.2f}%;top:{:.2f}%"><span>{}</span></b>')
    positions = ((name, to_x(alpha) / SIDE, to_y(beta) / SIDE) for name, (alpha, beta) in ends)
    return [mark.format(100 * x, 100 * y, name) for name, x, y in positions if 0 <= x <= 1 and 0 <= y <= 1]


def _ticks(axis: Reals, edge: str, to_picture: Callable[[float], float]) -> list[Markup]:
    values = ticks(float(axis[0]), float(axis[-1]), 4)
    shown = zip(values, tick_labels(values, NumberFormat.PLAIN), strict=True)
    return [label_at(edge, to_picture(value), label) for value, label in shown]
