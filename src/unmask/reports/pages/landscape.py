"""A landscape as one page: curves, lines, maps, numbers and layers, with no network.

What arrives: a `Landscape`, its table and what it says in sentences. What leaves: HTML with its pictures inside.
What never happens here: a request, text that was not escaped, or a number that is not in the landscape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from unmask.reports.charts.curves import (
    NUM_COLORS,
    Chart,
    ChartEvent,
    Curve,
    CurveStyle,
    XAxis,
    draw_chart,
    legend,
    steps_axis,
)
from unmask.reports.charts.downsample import smooth, thin
from unmask.reports.charts.heatmap import common_scale, draw_color_bar, draw_map
from unmask.reports.html.elements import Html, table, tag, text
from unmask.reports.html.page import page
from unmask.reports.landscape_results import DevMetric, Directions, Landscape, LandscapeSide, LossPoint
from unmask.reports.read_log import MetricSeries
from unmask.reports.text.number_format import NumberFormat, format_number, format_percent, tick_labels, ticks

_COLOURS = (0, NUM_COLORS + 1)
"""The pre-trained run is a line of the first colour, that from scratch a dashed one of the second."""
_LINE = (
    "The loss on a straight line through the start (0) and the end (1) of each run, and beyond. One unit is the way "
    "that this run went; the two ways differ in length, so widths are also given by the norm of the weights."
)
_RUNS = (
    "Across: from the start (0) to the end (1) of the run. Up: from the start towards the end of a second run from "
    "the same start, made as long as the first axis, so that a unit is the same distance on both. Dots are weights "
    "along the run, at the nearest place of the plane. A colour means the same on both maps."
)
_RANDOM = (
    "Two random directions around the end, each row of a matrix as long as that of the network (Li et al., 2018); "
    "biases and norms stay. 0.1 is a tenth of the norm of the weights. A run has next to no share in random "
    "directions, so its way is not drawn. A colour means the same on both maps."
)
_AROUND = (
    "How much the loss rises when the weights are moved in random directions, each row of a matrix by the same part "
    "of its length: the mean of several directions, at the same relative radius for both runs."
)


def landscape_page(found: Landscape, figures: Sequence[tuple[str, ...]], sentences: Sequence[str]) -> str:
    """The whole page."""
    head = tag("h1", "", text(found.title), tag("small", "", text("loss landscape 损失地形")))
    about = (
        "Tuned twice on the same rows in the same order: from what the network had learned, and from random weights."
    )
    parts = (
        tag("header", "", head, tag("p", "soft", text(about)), *(tag("p", "", text(one)) for one in sentences)),
        _section("figures", "概览", _figures(found, figures)),
        _section("training", "训练", *_training(found)),
        _section("line", "直线", *_lines(found)),
        _section("maps", "地形图", *_maps(found)),
        _section("around the end", "锐度", *_rises(found)),
        _section("layers", "各层", *_layers(found)),
        _section("run", "任务", _facts(found)),
        tag("footer", "", text("made by unmask landscape; the construction is that of Hao et al. (2019)")),
    )
    return page(
        f"landscape: {found.title}", tag("main", "run", *parts), ("walk.css", "run.css", "landscape.css"), "run.js"
    )


def _section(english: str, chinese: str, *content: Html) -> Html:
    name = tag("span", "", text(english), tag("small", "", text(chinese)))
    return tag("section", "", tag("h2", "", name), tag("div", "", *content))


def _figures(found: Landscape, rows: Iterable[tuple[str, ...]]) -> Html:
    names = ("", *(side.name for side in found.sides))
    cells = ([tag("td", "number" if n else "", text(word)) for n, word in enumerate(row)] for row in rows)
    return tag("div", "numbers", table(names, cells))


def _dev_name(found: Landscape) -> tuple[str, NumberFormat]:
    error = found.judged_by is DevMetric.ERROR
    return (f"dev {found.judged_by}", NumberFormat.SHARE if error else NumberFormat.PLAIN)


def _curves(
    found: Landscape, look: CurveStyle, values: Callable[[LandscapeSide], tuple[Sequence[float], Sequence[float]]]
) -> tuple[Curve, ...]:
    """One curve for each side."""
    curves = []
    for side, colour in zip(found.sides, _COLOURS, strict=True):
        x, y = values(side)
        curves.append(Curve(side.name, colour, look, np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)))
    return tuple(curves)


def _training(found: Landscape) -> Iterable[Html]:
    """Losses step by step, and how the fixed rows did."""
    name, unit = _dev_name(found)
    every = _curves(found, CurveStyle.LINE, _smooth)
    points = _curves(
        found, CurveStyle.POINTS, lambda side: (side.training.eval_step, _dev_curves(found, side.training.evals))
    )
    across = steps_axis(max(side.training.step[-1] for side in found.sides))
    yield legend(every)
    yield tag(
        "div",
        "charts",
        draw_chart(Chart("training loss", "of each step, smoothed, with dropout", every), across),
        draw_chart(Chart(name, "where weights were kept", points, unit), across),
    )


def _smooth(side: LandscapeSide) -> tuple[Sequence[float], Sequence[float]]:
    step = np.array(side.training.step)
    series = smooth(thin(MetricSeries(step, step, np.array(side.training.loss))))
    return series.step.tolist(), series.value.tolist()


def _dev_curves(found: Landscape, heights: Iterable[LossPoint]) -> list[float]:
    return [height.dev_value(found.judged_by) for height in heights]


def _lines(found: Landscape) -> Iterable[Html]:
    """Both straight lines through start and end."""
    name, unit = _dev_name(found)
    alpha = found.pretrained.line.alpha
    at = ticks(alpha[0], alpha[-1], 6)
    across = XAxis("α", alpha[-1], at, tick_labels(at, NumberFormat.PLAIN), low=alpha[0], digits=2)
    losses = _curves(found, CurveStyle.LINE, lambda side: (side.line.alpha, [one.loss for one in side.line.height]))
    judged = _curves(found, CurveStyle.LINE, lambda side: (side.line.alpha, _dev_curves(found, side.line.height)))
    events = (ChartEvent(0.0, "start"), ChartEvent(1.0, "end"))
    yield tag("p", "about", text(_LINE))
    yield legend(losses)
    yield tag(
        "div",
        "charts",
        draw_chart(Chart("loss", "on the fixed training rows", losses), across, events),
        draw_chart(Chart(name, "on the fixed dev rows", judged, unit), across, events),
    )


def _maps(found: Landscape) -> Iterable[Html]:
    """Two surfaces of the loss, and two of what rows to judge by say."""
    maps = [side.map for side in found.sides]
    name, unit = _dev_name(found)
    scales = (
        common_scale("loss on training rows", maps, NumberFormat.PLAIN, lambda height: height.loss),
        common_scale(name, maps, unit, lambda height: height.dev_value(found.judged_by)),
    )
    yield tag("p", "about", text(_RANDOM if maps[0].directions is Directions.RANDOM else _RUNS))
    for one in scales:
        yield draw_color_bar(one)
        yield tag("div", "charts maps", *(draw_map(side.map, one, side.name, _angle(side)) for side in found.sides))


def _angle(side: LandscapeSide) -> str:
    degrees = np.degrees(np.arccos(np.clip(side.map.cosine, -1, 1)))
    off = f", up to {max(side.map.off_plane):.0%} off the plane" if side.map.off_plane else ""
    return f"axes at {degrees:.0f}°{off}"


def _rises(found: Landscape) -> Iterable[Html]:
    rises = _curves(
        found,
        CurveStyle.POINTS,
        lambda side: ([0.0, *(one.radius for one in side.rises)], [0.0, *(one.mean for one in side.rises)]),
    )
    high = found.pretrained.rises[-1].radius
    at = ticks(0.0, high, 4)
    across = XAxis("r", high, at, tick_labels(at, NumberFormat.PLAIN), digits=2)
    yield tag("p", "about", text(_AROUND))
    yield legend(rises)
    yield tag(
        "div",
        "charts",
        draw_chart(Chart("rise of the loss", "at radius r, a part of the norm of the weights", rises), across),
    )


def _layers(found: Landscape) -> Iterable[Html]:
    """How far each layer moved, and what it costs to put some back."""
    one, other = found.sides
    name, unit = _dev_name(found)
    yield tag("p", "about", text("How far each layer moved, as a part of the norm of its weights at the start."))
    moved = (
        (a.name, _part(a.moved, a.norm), _part(b.moved, b.norm)) for a, b in zip(one.layers, other.layers, strict=True)
    )
    yield _figures(found, moved)
    yield tag("p", "about", text(f"The tuned network with some blocks as they were at the start: loss, and {name}."))
    backs = zip(one.rolled_back, other.rolled_back, strict=True)
    rows = [("as tuned", one.end, other.end), *((a.name, a.height, b.height) for a, b in backs)]
    yield _figures(found, ((word, _map_note(found, a, unit), _map_note(found, b, unit)) for word, a, b in rows))


def _part(moved: float, norm: float) -> str:
    return format_percent(moved / norm) if norm else f"{format_number(moved)} (from 0)"


def _map_note(found: Landscape, height: LossPoint, unit: NumberFormat) -> str:
    value = height.dev_value(found.judged_by)
    return f"{height.loss:.3f}, {format_percent(value) if unit is NumberFormat.SHARE else f'{value:.3f}'}"


def _facts(found: Landscape) -> Html:
    return tag("dl", "", *(part for k, v in found.facts for part in (tag("dt", "", text(k)), tag("dd", "", text(v)))))
