"""Draw what each policy reaches against what it trains: one point for each policy, from files of `experiments/methods.py`.

    python docs/make_policies.py docs/pictures/policies.svg runs/mini/policies.json runs/curve/policies.json

A point is the mean over tasks of the means over seeds; a file may hold some of the policies.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 56, 24, 20, 48


def main(out: str, *files: str) -> None:
    """Read all files, draw, and print the same as lines."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    trained: dict[str, list[float]] = defaultdict(list)
    for line in (line for file in files for line in json.loads(Path(file).read_text("utf-8"))):
        scores[line["policy"]][line["task"]].append(100 * line["score"])
        trained[line["policy"]].append(100 * line["trained"] / line["all"])
    points = {
        name: (statistics.fmean(trained[name]), statistics.fmean(map(statistics.fmean, tasks.values())))
        for name, tasks in scores.items()
    }
    Path(out).write_text(_picture(points), encoding="utf-8")
    for name, (share, score) in sorted(points.items(), key=lambda one: one[1]):
        print(f"{name:14s} {share:7.2f} % of the parameters, mean score {score:.2f}")


def _picture(points: dict[str, tuple[float, float]]) -> str:
    shares, means = zip(*points.values(), strict=True)
    low, high = math.log10(min(shares)) - 0.1, math.log10(max(shares)) + 0.15
    bottom, top = 5 * math.floor(min(means) / 5), 5 * math.ceil(max(means) / 5)

    def place(share: float, mean: float) -> tuple[float, float]:
        across = (math.log10(share) - low) / (high - low)
        up = (mean - bottom) / (top - bottom)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    body = []
    for mean in range(bottom, top + 1, 5):
        _, y = place(1, mean)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        body.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{mean}</text>')
    for share in (1, 3, 10, 30, 100):
        x, _ = place(share, bottom)
        body.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{share} %</text>')
    body.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">parameters that are trained</text>')
    ways = [sorted(place(*points[name]) for name in points if name.startswith(kind)) for kind in ("adapter", "top")]
    for way in ways:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in way)
        body.append(f'<polyline points="{joined}" fill="none" stroke="#9bb7d4"/>')
    for name, point in points.items():
        x, y = place(*point)
        anchor, shift = ("end", 5) if x > 0.85 * WIDTH else ("start", -5)
        body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="#0b62a8"/>')
        body.append(f'<text x="{x + shift:.1f}" y="{y + 19:.1f}" text-anchor="{anchor}">{name}</text>')
    style = 'font-family="sans-serif" font-size="13" fill="#333"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
    return f'{head}<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(body)}</svg>\n'


if __name__ == "__main__":
    main(*sys.argv[1:])
