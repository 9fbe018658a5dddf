"""Contour lines of a surface over a grid, and round levels for them. The surface is linear between grid points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from unmask.reports.read_log import Reals
from unmask.reports.text.number_format import ticks

Crossing: TypeAlias = tuple[int, int, int, int]
"""An edge of a cell: its two grid points, the smaller first."""
Loop: TypeAlias = list[tuple[float, float]]

_LADDERS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Round steps of equal ratio, from fine to coarse."""
MAX_LEVELS = 11
"""The maximum number of levels, as many as the colors that can be distinguished."""
_FEWEST = 5
_RANGE = 100.0
"""The largest ratio of the highest value to the lowest level."""


def contour_levels(low: float, high: float, ratio: bool) -> tuple[float, ...]:
    """Round numbers strictly between two values: in equal ratios (losses), or in equal steps."""
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
    """The closed outlines of the region where `z` (a row per `y`) is at least the level, by marching squares.

    A ring of low points with zero width around the grid closes outlines at the border.
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
    """The segments of the outlines: in each cell, from an edge that leaves the region to one that enters it."""
    inside = z >= level
    mixed = inside[:-1, :-1] + 0 + inside[1:, :-1] + inside[:-1, 1:] + inside[1:, 1:]
    for i, j in np.argwhere((mixed > 0) & (mixed < 4)).tolist():
        corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
        sides = list(zip(corners, corners[1:] + corners[:1], strict=True))
        leaves = [n for n, (a, b) in enumerate(sides) if inside[a] and not inside[b]]
        enters = [n for n, (a, b) in enumerate(sides) if inside[b] and not inside[a]]
        # If two opposite corners are inside, the mean decides whether they are connected.
        connected = np.mean([z[corner] for corner in corners]) >= level
        for leave in leaves:
            order = [(leave + step) % 4 for step in ((1, 2, 3) if connected else (3, 2, 1))]
            enter = next(side for side in order if side in enters)
            yield _crossing(*sides[leave]), _crossing(*sides[enter])


def _crossing(a: tuple[int, int], b: tuple[int, int]) -> Crossing:
    return (*min(a, b), *max(a, b))


def _point(x: Reals, y: Reals, z: Reals, level: float, crossing: Crossing) -> tuple[float, float]:
    """The point of the level on an edge of a cell, by linear interpolation."""
    i, j, k, m = crossing
    share = (level - z[i, j]) / (z[k, m] - z[i, j])
    return float(x[j] + share * (x[m] - x[j])), float(y[i] + share * (y[k] - y[i]))
