"""The expected numbers of spans, against counting every possibility or playing the game many times."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from unmask.audits.rewriting import expected_covering_lengths, expected_cut_lengths, poisson_probabilities


def every_cut(total, parts):
    """All ways to cut a total into parts, as lists of lengths."""
    for inner in combinations(range(1, total), parts - 1):
        edges = (0, *inner, total)
        yield [b - a for a, b in pairwise(edges)]


@pytest.mark.parametrize(("total", "parts"), [(1, 1), (7, 1), (7, 2), (9, 4), (6, 6), (12, 3)])
def test_cut_lengths_are_the_average_over_every_cut(total, parts):
    cuts = list(every_cut(total, parts))
    lengths = np.minimum(np.concatenate(cuts), 5)
    expected = np.bincount(lengths, minlength=6) / len(cuts)
    assert expected_cut_lengths(np.array([total]), np.array([parts]), 5) == pytest.approx(expected)


def test_rows_add_up_and_a_row_without_tokens_adds_nothing():
    both = expected_cut_lengths(np.array([9, 12, 0]), np.array([4, 3, 1]), 6)
    alone = [expected_cut_lengths(np.array([n]), np.array([k]), 6) for n, k in ((9, 4), (12, 3))]
    assert both == pytest.approx(alone[0] + alone[1])


@pytest.mark.parametrize("mean", [0.5, 1.0, 3.0])
def test_poisson_sums_to_one_and_has_its_mean(mean):
    law = poisson_probabilities(mean, 40)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(41) == pytest.approx(mean)


@pytest.mark.parametrize(("budget", "mean"), [(1, 3.0), (4, 3.0), (20, 3.0), (10, 1.0)])
def test_covering_lengths_are_what_the_game_gives(budget, mean):
    rng = np.random.default_rng(budget)
    games, counts = 20_000, np.zeros(7)
    for _ in range(games):
        left = budget
        while left > 0:
            length = min(rng.poisson(mean), left)
            counts[min(length, 6)] += 1
            left -= length
    expected = expected_covering_lengths(np.array([budget]), mean, 6)
    assert counts / games == pytest.approx(expected, abs=0.06)
    assert expected_covering_lengths(np.array([budget] * 3), mean, 6) == pytest.approx(3 * expected)


def test_covered_units_add_up_to_the_budget():
    counts = expected_covering_lengths(np.array([30, 7]), 3.0, 40)
    assert counts @ np.arange(41) == pytest.approx(37)
