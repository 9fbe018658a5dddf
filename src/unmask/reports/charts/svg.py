"""SVG elements: the frame of all charts, placed labels, bars, dots and attention grids. Style sheets set the colors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from unmask.reports.html import join, render
from unmask.reports.text.walk_labels import shorten_token
from unmask.walks.walk import AttentionGrid

SIDE = 1000
"""The coordinates of a stretched chart go from 0 to this number."""
_STRETCHED = Markup('viewBox="0 0 {0} {0}" preserveAspectRatio="none"').format(SIDE)
_ROW, _LABEL, _BAR, _END = 22, 96, 260, 52
_LINE, _HEIGHT, _DOT, _EDGE = 220, 30, 4.5, 8
_CELL, _GRID_LABEL, _TOP, _MAX_TOKENS = 16, 66, 26, 40


def svg(css: str, label: str, body: Iterable[Markup], size: Markup = _STRETCHED) -> Markup:
    """An SVG image; without a size it fills its area."""
    return Markup('<svg class="{}" {} role="img" aria-label="{}">{}</svg>').format(css, size, label, join(body))


def fixed_size(width: float, height: float) -> Markup:
    """The attributes of an image that is not stretched."""
    return Markup('viewBox="0 0 {0} {1}" width="{0}" height="{1}"').format(width, height)


def figure(
    title: str,
    description: str,
    image: Markup,
    up: Sequence[Markup],
    below: Sequence[tuple[str, Sequence[Markup]]],
    labels: Iterable[Markup] = (),
    area: str = "area",
) -> Markup:
    """An image with its caption, the labels of its axes and labels inside."""
    chart = {"title": title, "description": description}
    values = {"chart": chart, "svg": image, "up": up, "below": below, "labels": labels, "area": area}
    return render("figure.html", values)


def label_at(edge: str, position: float, words: str) -> Markup:
    """A label at a position along an edge; labels at the far end are aligned to it."""
    css = Markup(' class="far"') if position > SIDE * 0.96 else ""
    return Markup('<span{} style="{}:{:.2f}%">{}</span>').format(css, edge, 100 * position / SIDE, words)


def scale_between(low: float, high: float) -> Callable[[float], float]:
    """The function from values of an axis to coordinates."""
    return lambda value: SIDE * (value - low) / (high - low)


def _text(x: float, y: float, anchor: str, words: object) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def draw_bars(names: Sequence[str], fractions: Sequence[float]) -> Markup:
    """One horizontal bar per fraction; the largest fills the width."""
    largest = max([*fractions, 1e-9])
    body = []
    for number, (name, fraction) in enumerate(zip(names, fractions, strict=True)):
        y, length = _ROW * number, _BAR * fraction / largest
        body.append(_text(_LABEL - 8, y + 15, "end", name))
        body.append(
            Markup('<rect x="{}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(_LABEL, y + 4, length, _ROW - 8)
        )
        body.append(
            Markup('<text x="{:.1f}" y="{}">{:.1f} %</text>').format(_LABEL + length + 6, y + 15, 100 * fraction)
        )
    return svg("bars c0", f"{len(names)} shares", body, fixed_size(_LABEL + _BAR + _END, _ROW * len(names)))


def draw_dots(groups: Sequence[Sequence[float]], low: float, high: float) -> Markup:
    """The scores of each group as dots on one line from `low` to `high`, with a mark at their mean."""
    middle, width = _HEIGHT / 2, _LINE - 2 * _EDGE
    body = [Markup('<line class="rule" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(_EDGE, middle, _LINE - _EDGE, middle)]
    for number, scores in enumerate(groups):
        positions = [_EDGE + width * (score - low) / max(high - low, 1e-9) for score in scores]
        dot = Markup('<circle class="c{}" cx="{:.1f}" cy="{}" r="{}"/>')
        body += [dot.format(number, x, middle, _DOT) for x in positions]
        if positions:
            mean = sum(positions) / len(positions)
            mark = Markup('<line class="c{}" x1="{:.1f}" y1="4" x2="{:.1f}" y2="{}"/>')
            body.append(mark.format(number, mean, mean, _HEIGHT - 4))
    return svg("dots", "scores of all seeds", body, fixed_size(_LINE, _HEIGHT))


def draw_grid(stream: AttentionGrid, tokens: Sequence[str]) -> Markup:
    """An attention pattern as squares: one row per group of queries, one column per key."""
    count = min(len(tokens), _MAX_TOKENS)
    groups = [group for group in stream.query_groups if group[0] < count]
    columns = range(0, count, 1 if count <= 20 else 2)
    body = [_text(_GRID_LABEL + _CELL * at + _CELL // 2, _TOP - 8, "middle", at) for at in columns]
    square = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>')
    for number, group in enumerate(groups):
        y = _TOP + _CELL * number
        body.append(_text(_GRID_LABEL - 6, y + 12, "end", _group_name(group, tokens, count)))
        for at, is_visible in enumerate(stream.grid[group[0], :count].tolist()):
            css, x = "seen" if is_visible else "unseen", _GRID_LABEL + _CELL * at
            body.append(square.format(css, x + 1, y + 1, _CELL - 2, _CELL - 2))
    size = fixed_size(_GRID_LABEL + _CELL * count, _TOP + _CELL * len(groups))
    return svg("grid", f"{stream.name}: rows read, columns are read", body, size)


def _group_name(group: tuple[int, ...], tokens: Sequence[str], count: int) -> str:
    if len(group) == 1:
        return f"{group[0]} {shorten_token(tokens[group[0]], 6)}"
    return "all places" if len(group) >= count else "the others"
