"""Who sees whom as a picture: one square for each pair of places.

What arrives: a boolean grid and the tokens of the row. What leaves: an inline SVG.
What never happens here: colours. The page's style decides them, for light and for dark.
"""

from __future__ import annotations

from collections.abc import Sequence

from unmask.reports.html.elements import Html, text
from unmask.reports.text.walk_labels import shorten_token
from unmask.walks.walk import AttentionGrid

_CELL, _LABEL, _TOP = 16, 66, 26
_MOST = 40


def draw_grid(stream: AttentionGrid, tokens: Sequence[str]) -> Html:
    """The lines of a stream: who reads stands on the left, what may be read on top."""
    count = min(len(tokens), _MOST)
    lines = [line for line in stream.query_groups if line[0] < count]
    width, height = _LABEL + _CELL * count, _TOP + _CELL * len(lines)
    body = [_columns(count)]
    for number, line in enumerate(lines):
        name = f"{line[0]} {shorten_token(tokens[line[0]], 6)}" if len(line) == 1 else _together(line, count)
        y = _TOP + _CELL * number
        body.append(f'<text x="{_LABEL - 6}" y="{y + 12}" text-anchor="end">{text(name)}</text>')
        for at, seen in enumerate(stream.grid[line[0], :count].tolist()):
            css = "seen" if seen else "unseen"
            x = _LABEL + _CELL * at
            body.append(
                f'<rect class="{css}" x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_CELL - 2}" rx="2"/>'
            )
    label = text(f"{stream.name}: rows read, columns are read")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return Html(f'<svg class="grid" {size} role="img" aria-label="{label}">{"".join(body)}</svg>')


def _columns(count: int) -> str:
    places = range(0, count, 1 if count <= 20 else 2)
    return "".join(
        f'<text x="{_LABEL + _CELL * at + _CELL // 2}" y="{_TOP - 8}" text-anchor="middle">{at}</text>' for at in places
    )


def _together(line: tuple[int, ...], count: int) -> str:
    return "all places" if len(line) >= count else "the others"
