"""The page of a loss landscape: training curves, lines, maps, sharpness and layers of two fine-tuning runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from markupsafe import Markup

from unmask.reports.charts.curves import (
    NUM_COLORS,
    Chart,
    ChartEvent,
    Curve,
    CurveStyle,
    XAxis,
    draw_chart,
    legend,
    plain_axis,
    steps_axis,
)
from unmask.reports.charts.heatmap import common_scale, draw_color_bar, draw_map
from unmask.reports.html import render_page
from unmask.reports.landscape_results import DevMetric, Directions, Landscape, LandscapeSide, LossPoint
from unmask.reports.read_log import MetricSeries, smooth, thin
from unmask.reports.text.number_format import NumberFormat, format_number, format_percent

_COLORS = (0, NUM_COLORS + 1)
"""The pre-trained run has the first color; the run from scratch has the second, dashed."""


def landscape_page(found: Landscape, figures: Sequence[tuple[str, ...]], sentences: Sequence[str]) -> str:
    """The whole page."""
    one, other = found.sides
    resets = zip(one.rolled_back, other.rolled_back, strict=True)
    values = {
        "found": found,
        "figures": figures,
        "sentences": sentences,
        "is_random": one.map.directions is Directions.RANDOM,
        "dev_name": _dev_name(found),
        "training": _training(found),
        "line": _line(found),
        "map_rows": list(_maps(found)),
        "rises": _rises(found),
        "moved": [
            (a.name, _fraction(a.moved, a.norm), _fraction(b.moved, b.norm))
            for a, b in zip(one.layers, other.layers, strict=True)
        ],
        "rolled_back": [
            (name, _losses(found, a), _losses(found, b))
            for name, a, b in (("as tuned", one.end, other.end), *((a.name, a.height, b.height) for a, b in resets))
        ],
    }
    return render_page(
        "landscape.html", f"landscape: {found.title}", values, ("walk.css", "run.css", "landscape.css"), "run.js"
    )


def _dev_name(found: Landscape) -> str:
    return f"dev {found.judged_by}"


def _dev_unit(found: Landscape) -> NumberFormat:
    return NumberFormat.SHARE if found.judged_by is DevMetric.ERROR else NumberFormat.PLAIN


def _curves(
    found: Landscape, style: CurveStyle, values: Callable[[LandscapeSide], tuple[Sequence[float], Sequence[float]]]
) -> tuple[Curve, ...]:
    """One curve per side."""
    curves = []
    for side, color in zip(found.sides, _COLORS, strict=True):
        x, y = (np.array(one, dtype=np.float64) for one in values(side))
        curves.append(Curve(side.name, color, style, x, y))
    return tuple(curves)


def _charts(
    curves: Sequence[Curve], axis: XAxis, charts: Sequence[Chart], events: Sequence[ChartEvent] = ()
) -> dict[str, object]:
    return {"legend": legend(curves), "charts": [draw_chart(chart, axis, events) for chart in charts]}


def _training(found: Landscape) -> dict[str, object]:
    """The loss of each step, and the dev metric at the saved weights."""
    losses = _curves(found, CurveStyle.LINE, _smoothed)
    dev = _curves(found, CurveStyle.POINTS, lambda side: (side.training.eval_step, _dev(found, side.training.evals)))
    charts = (
        Chart("training loss", "of each step, smoothed, with dropout", losses),
        Chart(_dev_name(found), "at the saved weights", dev, _dev_unit(found)),
    )
    return _charts(losses, steps_axis(max(side.training.step[-1] for side in found.sides)), charts)


def _smoothed(side: LandscapeSide) -> tuple[Sequence[float], Sequence[float]]:
    step = np.array(side.training.step)
    series = smooth(thin(MetricSeries(step, step, np.array(side.training.loss))))
    return series.step.tolist(), series.value.tolist()


def _dev(found: Landscape, points: Sequence[LossPoint]) -> list[float]:
    return [point.dev_value(found.judged_by) for point in points]


def _line(found: Landscape) -> dict[str, object]:
    """The lines through start and end of both runs."""
    alpha = found.pretrained.line.alpha
    losses = _curves(found, CurveStyle.LINE, lambda side: (side.line.alpha, [one.loss for one in side.line.height]))
    dev = _curves(found, CurveStyle.LINE, lambda side: (side.line.alpha, _dev(found, side.line.height)))
    charts = (
        Chart("loss", "on the fixed training rows", losses),
        Chart(_dev_name(found), "on the fixed dev rows", dev, _dev_unit(found)),
    )
    axis = plain_axis("α", alpha[0], alpha[-1], 6)
    return _charts(losses, axis, charts, (ChartEvent(0.0, "start"), ChartEvent(1.0, "end")))


def _maps(found: Landscape) -> Iterator[tuple[Markup, list[Markup]]]:
    """A color bar with two maps: of the training loss, and of the dev metric."""
    maps = [side.map for side in found.sides]
    scales = (
        common_scale("loss on training rows", maps, NumberFormat.PLAIN, lambda point: point.loss),
        common_scale(_dev_name(found), maps, _dev_unit(found), lambda point: point.dev_value(found.judged_by)),
    )
    for scale in scales:
        yield draw_color_bar(scale), [draw_map(side.map, scale, side.name, _angle(side)) for side in found.sides]


def _angle(side: LandscapeSide) -> str:
    degrees = np.degrees(np.arccos(np.clip(side.map.cosine, -1, 1)))
    off = f", up to {max(side.map.off_plane):.0%} off the plane" if side.map.off_plane else ""
    return f"axes at {degrees:.0f}°{off}"


def _rises(found: Landscape) -> dict[str, object]:
    rises = _curves(
        found,
        CurveStyle.POINTS,
        lambda side: ([0.0, *(one.radius for one in side.rises)], [0.0, *(one.mean for one in side.rises)]),
    )
    chart = Chart("rise of the loss", "at radius r, relative to the norm of the weights", rises)
    return _charts(rises, plain_axis("r", 0.0, found.pretrained.rises[-1].radius, 4), (chart,))


def _fraction(moved: float, norm: float) -> str:
    return format_percent(moved / norm) if norm else f"{format_number(moved)} (from 0)"


def _losses(found: Landscape, point: LossPoint) -> str:
    value = point.dev_value(found.judged_by)
    is_error = found.judged_by is DevMetric.ERROR
    return f"{point.loss:.3f}, {format_percent(value) if is_error else f'{value:.3f}'}"
