"""Shares as bars, and scores as dots on a line: small pictures for tables and pages.

What arrives: names with numbers. What leaves: an inline SVG.
What never happens here: colours. The page's style decides them, for light and for dark.
"""

from __future__ import annotations

from collections.abc import Sequence

from unmask.reports.html.elements import Html, text

_ROW, _LABEL, _BAR, _END = 22, 96, 260, 52
_LINE, _HEIGHT, _DOT, _EDGE = 220, 30, 4.5, 8


def draw_bars(names: Sequence[str], shares: Sequence[float]) -> Html:
    """One bar for each share, as long as it is large; the largest fills the width."""
    most = max([*shares, 1e-9])
    body = []
    for number, (name, share) in enumerate(zip(names, shares, strict=True)):
        y = _ROW * number
        body.append(f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{text(name)}</text>')
        body.append(f'<rect x="{_LABEL}" y="{y + 4}" width="{_BAR * share / most:.1f}" height="{_ROW - 8}" rx="2"/>')
        body.append(f'<text x="{_LABEL + _BAR * share / most + 6:.1f}" y="{y + 15}">{100 * share:.1f} %</text>')
    return _svg("bars c0", _LABEL + _BAR + _END, _ROW * len(names), f"{len(names)} shares", body)


def draw_dots(sides: Sequence[Sequence[float]], low: float, high: float) -> Html:
    """The scores of each side as dots on one line from `low` to `high`; a stroke marks their mean."""
    width = _LINE - 2 * _EDGE
    body = [f'<line class="rule" x1="{_EDGE}" y1="{_HEIGHT / 2}" x2="{_LINE - _EDGE}" y2="{_HEIGHT / 2}"/>']
    for number, scores in enumerate(sides):
        places = [_EDGE + width * (score - low) / max(high - low, 1e-9) for score in scores]
        body += [f'<circle class="c{number}" cx="{x:.1f}" cy="{_HEIGHT / 2}" r="{_DOT}"/>' for x in places]
        mean = sum(places) / max(len(places), 1)
        body += [f'<line class="c{number}" x1="{mean:.1f}" y1="4" x2="{mean:.1f}" y2="{_HEIGHT - 4}"/>'] * bool(places)
    return _svg("dots", _LINE, _HEIGHT, "scores of all seeds", body)


def _svg(css: str, width: float, height: float, label: str, body: Sequence[str]) -> Html:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return Html(f'<svg class="{css}" {size} role="img" aria-label="{text(label)}">{"".join(body)}</svg>')
