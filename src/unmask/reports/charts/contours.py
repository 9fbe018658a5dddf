"""Where a surface lies above a level: closed outlines, and round levels to cut it at.

What arrives: heights over a grid. What leaves: loops of points in the units of the axes.
What never happens here: drawing. Between places of the grid the surface is taken to be straight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import ticks

Crossing: TypeAlias = tuple[int, int, int, int]
"""A side of a cell, by the two places that it joins, the smaller one first."""
Loop: TypeAlias = list[tuple[float, float]]

_LADDERS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Round steps of equal ratio, from fine to coarse."""
MAX_LEVELS = 11
"""Levels of one picture: as many as colours can be told apart."""
_FEWEST = 5
_RANGE = 100.0
"""How far the lowest level may lie below the highest place: what is lower still is all one bottom."""


def contour_levels(low: float, high: float, ratio: bool) -> tuple[float, ...]:
    """Round numbers strictly between two heights: in equal ratios, as losses are read, or in equal steps."""
    if not high > low:
        return ()
    floor = max(low, high / _RANGE)
    for ladder in _LADDERS if ratio else ():
        found = [value for value in _rungs(ladder, floor, high) if floor < value < high]
        if _FEWEST <= len(found) <= MAX_LEVELS:
            return tuple(found)
        if len(found) < _FEWEST:
            break
    return tuple(value for value in ticks(low, high, MAX_LEVELS - 3) if low < value < high)[:MAX_LEVELS]


def _rungs(ladder: Sequence[float], low: float, high: float) -> list[float]:
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [float(f"{step}e{power}") for power in powers for step in ladder]


def contour_outlines(x: Reals, y: Reals, z: Reals, level: float) -> Iterator[Loop]:
    """The outlines of all places where `z` (a row for each `y`) is at least at a level, closed along the border.

    Around the grid stands a ring of low places that takes no room, so every outline closes.
    """
    x, y = np.pad(x, 1, mode="edge"), np.pad(y, 1, mode="edge")
    z = np.pad(z, 1, constant_values=level - 1)
    after = dict(_pieces(z, level))
    while after:
        first, at = next(iter(after.items()))
        del after[first]
        loop = [_point(x, y, z, level, first)]
        while at != first:
            loop.append(_point(x, y, z, level, at))
            at = after.pop(at)
        yield loop


def _pieces(z: Reals, level: float) -> Iterator[tuple[Crossing, Crossing]]:
    """A piece of outline for every cell that it goes through: from the side where one leaves the high ground, walking
    around the cell, to the side where one comes back to it.
    """
    inside = z >= level
    mixed = inside[:-1, :-1] + 0 + inside[1:, :-1] + inside[:-1, 1:] + inside[1:, 1:]
    for i, j in np.argwhere((mixed > 0) & (mixed < 4)).tolist():
        corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
        sides = list(zip(corners, corners[1:] + corners[:1], strict=True))
        leaves = [n for n, (a, b) in enumerate(sides) if inside[a] and not inside[b]]
        enters = [n for n, (a, b) in enumerate(sides) if inside[b] and not inside[a]]
        # Where two corners that face each other are high, the middle says whether they hang together.
        together = np.mean([z[corner] for corner in corners]) >= level
        for leave in leaves:
            way = [(leave + step) % 4 for step in ((1, 2, 3) if together else (3, 2, 1))]
            enter = next(side for side in way if side in enters)
            yield _crossing(*sides[leave]), _crossing(*sides[enter])


def _crossing(a: tuple[int, int], b: tuple[int, int]) -> Crossing:
    return (*min(a, b), *max(a, b))


def _point(x: Reals, y: Reals, z: Reals, level: float, crossing: Crossing) -> tuple[float, float]:
    """Where the level lies on the side of a cell."""
    i, j, k, m = crossing
    share = (level - z[i, j]) / (z[k, m] - z[i, j])
    return float(x[j] + share * (x[m] - x[j])), float(y[i] + share * (y[k] - y[i]))
