"""Draw the masked-language-model loss of runs as one picture for the documentation.

    python docs/make_curves.py docs/pictures/small.svg "Chinese=runs/zh/run:6.704" "English=runs/en/run:7.217"

What arrives: run folders (or their records), each with a name and the unigram entropy of its corpus. What leaves: an
SVG: training as a line, validation as dots, the entropy as a dashed line, over the tokens seen.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 360, 52, 20, 110, 44
COLOURS = ("#0072b2", "#d55e00", "#008a64")
SMOOTH = 5


def main() -> None:
    target, runs = Path(sys.argv[1]), [_read(word) for word in sys.argv[2:]]
    most = max(x for _, _, train, trial in runs for x, _ in (*train, *trial))
    low = min(y for _, _, train, trial in runs for _, y in (*train, *trial))
    view = (0.0, most, low - 0.3, max(entropy for _, entropy, _, _ in runs) + 0.6)
    drawn = [*_axes(view), *(part for number, run in enumerate(runs) for part in _run(run, COLOURS[number], view))]
    body = "\n".join(drawn)
    style = (
        "text{font:13px system-ui,sans-serif;fill:#667}.t{fill:none;stroke-width:1.6}.g{stroke:#99a3;stroke-width:1}"
    )
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{style}</style>\n{body}\n</svg>\n'
    )


def _read(word: str) -> tuple[str, float, list[tuple[float, float]], list[tuple[float, float]]]:
    name, _, rest = word.partition("=")
    path, _, entropy = rest.rpartition(":")
    file = Path(path) / "record.jsonl" if Path(path).is_dir() else Path(path)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = {kind: [(x["tokens"], x["loss"]["mlm"]) for x in lines if x["kind"] == kind] for kind in ("step", "eval")}
    return name, float(entropy), _smooth(found["step"]), found["eval"]


def _smooth(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    around = [points[max(i - SMOOTH, 0) : i + SMOOTH + 1] for i in range(len(points))]
    return [(x, sum(y for _, y in some) / len(some)) for (x, _), some in zip(points, around, strict=True)]


def _place(x: float, y: float, view: tuple[float, float, float, float]) -> tuple[float, float]:
    right = LEFT + (x - view[0]) / (view[1] - view[0]) * (WIDTH - LEFT - RIGHT)
    down = TOP + (view[3] - min(y, view[3])) / (view[3] - view[2]) * (HEIGHT - TOP - BOTTOM)
    return round(right, 1), round(down, 1)


def _axes(view: tuple[float, float, float, float]) -> Iterator[str]:
    for level in range(int(view[2]) + 1, int(view[3]) + 1):
        _, y = _place(0, level, view)
        yield f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{level}</text>'
    size = 10 ** math.floor(math.log10(view[1]))
    gap = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if view[1] / (size * part) <= 6)
    for number in range(int(view[1] / gap) + 1):
        x, _ = _place(number * gap, view[2], view)
        yield f'<text x="{x}" y="{HEIGHT - 24}" text-anchor="middle">{number * gap / 1e6:.4g} M</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">tokens seen</text>'
    yield f'<text x="{LEFT}" y="13">loss of masked tokens, nats</text>'


def _run(
    run: tuple[str, float, list[tuple[float, float]], list[tuple[float, float]]],
    colour: str,
    view: tuple[float, float, float, float],
) -> Iterator[str]:
    name, entropy, train, trial = run
    path = " ".join(f"{x},{y}" for x, y in (_place(*point, view) for point in train))
    yield f'<polyline class="t" opacity=".55" stroke="{colour}" points="{path}"/>'
    for point in trial:
        x, y = _place(*point, view)
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    _, level = _place(0, entropy, view)
    yield f'<line class="t" stroke="{colour}" stroke-dasharray="6 4" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level}" y2="{level}"/>'
    end = WIDTH - RIGHT + 8
    yield f'<text x="{end}" y="{level + 4}" style="fill:{colour}">unigram {entropy:.2f}</text>'
    last = _place(*trial[-1], view)
    yield f'<text x="{end}" y="{last[1] + (14 if colour == COLOURS[0] else -6)}" style="fill:{colour}">{name} {trial[-1][1]:.2f}</text>'


if __name__ == "__main__":
    main()
