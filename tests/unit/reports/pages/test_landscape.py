"""Outlines that enclose the right area, levels that are round, and a page that needs nothing from outside."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unmask.reports.charts.contours import MAX_LEVELS, contour_levels, contour_outlines
from unmask.reports.landscape_results import (
    Basin,
    DevMetric,
    Directions,
    Landscape,
    LandscapeSide,
    LayerDistance,
    LossLine,
    LossMap,
    LossPoint,
    LossRise,
    RolledBack,
    TrainingCurves,
)
from unmask.reports.pages.landscape import landscape_page


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


def made(name: str, shift: float) -> LandscapeSide:
    axis = tuple(np.linspace(-1, 2, 5).tolist())
    rows = tuple(
        tuple(LossPoint(0.1 + shift + (a - 1) ** 2 + b**2, 0.5, min(0.1 * a**2, 1.0)) for a in axis) for b in axis
    )
    line = rows[2]
    return LandscapeSide(
        name=name,
        training=TrainingCurves((1.0, 2.0, 3.0), (0.7, 0.5, 0.2), (0.0, 3.0), (line[0], line[3])),
        line=LossLine(axis, line),
        map=LossMap(
            Directions.RUNS, axis, axis, rows, ((0.0, 0.0), (0.6, 0.2), (1.0, 0.0)), (0.0, 0.4, 0.0), (0.0, 0.9), 0.5
        ),
        basins=(Basin(0.2, 0.5, 1.5, True),) * 2,
        rises=(LossRise(0.1, 0.2, 0.1), LossRise(0.2, 0.5, 0.1)),
        layers=(LayerDistance("embeddings", 0.1, 5.0), LayerDistance("head", 0.1, 0.0)),
        rolled_back=(RolledBack("all blocks", line[0]),),
        moved=1.0,
        norm=10.0,
    )


def test_a_page_holds_everything_and_asks_for_nothing():
    found = Landscape(
        "net on <b>.jsonl", (("task", "a & b"),), DevMetric.ERROR, made("pre-trained", 0.0), made("from scratch", 0.3)
    )
    page = landscape_page(found, [("loss at the end", "0.1", "0.4")], ["The basin is <wide>."])
    assert page.count('<svg class="map"') == 4
    assert page.count('<svg class="curves"') == 5
    assert "net on &lt;b&gt;.jsonl" in page
    assert "The basin is &lt;wide&gt;." in page
    assert not re.search(r"(https?:|src=|@import|url\()", page)
    assert not re.search(r"\b(nan|inf|NaN|Infinity)\b", page)
    assert len(re.findall(r'class="line c1 dashed" data-name="from scratch"', page)) == 3  # scratch is dashed
    assert len(re.findall(r'class="line c0" data-name="pre-trained"', page)) == 3
    assert "axes at 60°" in page
    assert "(from 0)" in page  # a layer that began with zeros has no relative way


def test_numbers_where_nothing_is_right_or_wrong():
    found = Landscape("x", (), DevMetric.LOSS, made("pre-trained", 0.0), made("from scratch", 0.3))
    page = landscape_page(found, [], [])
    assert "dev loss" in page
    assert "dev error" not in page
