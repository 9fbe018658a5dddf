"""Outlines that enclose the right area, and levels that are round."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.reports.charts.contours import MAX_LEVELS, contour_levels, contour_outlines


def area(loops) -> float:
    """The area inside loops, those inside others taken away."""
    total = 0.0
    for loop in loops:
        x, y = np.array(loop).T
        total += 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
    return abs(total)


AXIS = np.linspace(-1.0, 1.0, 41)
X, Y = np.meshgrid(AXIS, AXIS)


@pytest.mark.parametrize(
    ("surface", "level", "aim"),
    [
        (1 - X**2 - Y**2, 0.5, np.pi * 0.5),  # a hill: the outline is a circle
        (X**2 + Y**2, 0.25, 4 - np.pi * 0.25),  # a hole: the border, and a circle inside it
        (X, 0.3, 2 * 0.7),  # a slope that is cut by the border
        (X + 5, 0.0, 4.0),  # everything
        (X - 5, 0.0, 0.0),  # nothing
    ],
)
def test_outlines_enclose_what_is_high(surface, level, aim):
    assert area(contour_outlines(AXIS, AXIS, surface, level)) == pytest.approx(aim, abs=0.02)


def test_outlines_of_any_ground_close_and_enclose_it():
    source = np.random.default_rng(4)
    for _ in range(20):
        z = source.normal(size=(6, 7))
        x, y = np.arange(7.0), np.arange(6.0)
        fine_x, fine_y = np.meshgrid(np.linspace(0, 6, 241), np.linspace(0, 5, 201))
        loops = list(contour_outlines(x, y, z, 0.0))
        i, j = np.minimum(fine_y.astype(int), 4), np.minimum(fine_x.astype(int), 5)
        v, u = fine_y - i, fine_x - j
        straight = (1 - v) * ((1 - u) * z[i, j] + u * z[i, j + 1]) + v * ((1 - u) * z[i + 1, j] + u * z[i + 1, j + 1])
        assert area(loops) == pytest.approx(30 * (straight >= 0).mean(), abs=1.2)
        assert all(len(loop) >= 3 for loop in loops)


def test_levels_are_round_and_few():
    assert contour_levels(0.11, 3.2, True) == (0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    assert contour_levels(0.1, 0.34, False) == (0.15, 0.2, 0.25, 0.3)
    for low, high in ((1e-4, 50.0), (0.6, 0.7), (0.0, 1.0), (3.0, 3.0)):
        found = contour_levels(low, high, True)
        assert len(found) <= MAX_LEVELS
        assert all(low < one < high for one in found)
    assert contour_levels(0.6, 0.7, True)
