"""Orders of candidates, against every order of equals, scikit-learn, and by hand."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from unmask.core.records import Doubles
from unmask.evaluation.metrics.ranking import ranking_baseline, ranking_metrics


def one(value: Doubles, said: Doubles) -> tuple[float, ...]:
    scores = ranking_metrics(value, said, np.array([0, len(value)]))
    return tuple(scores[name] for name in ("map", "mrr", "p_at_1", "ndcg_at_10"))


def in_order(value: list[float]) -> tuple[float, float, float, float]:
    """The four scores of candidates that stand in this order."""
    ranks = [rank for rank, each in enumerate(value, 1) if each > 0]
    precision = sum(found / rank for found, rank in enumerate(ranks, 1)) / len(ranks)
    gain, ideal = (
        sum(each / math.log2(1 + rank) for rank, each in enumerate(order[:10], 1))
        for order in (value, sorted(value, reverse=True))
    )
    return precision, 1 / ranks[0], float(value[0] > 0), gain / ideal


def test_equals_score_the_mean_over_all_their_orders():
    draw = np.random.default_rng(10)
    for _ in range(60):
        value = draw.integers(0, 3, 6).astype(np.float64)
        value[draw.integers(0, 6)] = 1.0
        said = draw.integers(0, 3, 6).astype(np.float64)
        orders = [
            [value[i] for i in order]
            for order in permutations(range(6))
            if all(said[a] >= said[b] for a, b in pairwise(order))
        ]
        assert one(value, said) == pytest.approx(np.mean([in_order(order) for order in orders], axis=0))


def test_long_lists_as_scikit_learn():
    draw = np.random.default_rng(11)
    for _ in range(50):
        value = (draw.random(40) < 0.2).astype(np.float64)
        value[0] = 1.0
        said = draw.permutation(40).astype(np.float64)
        precision, _, _, gain = one(value, said)
        assert precision == pytest.approx(average_precision_score(value, said))
        assert gain == pytest.approx(ndcg_score([value], [said], k=10))
        tied, graded = np.floor(said / 4), value * draw.integers(1, 4, 40)
        assert one(graded, tied)[3] == pytest.approx(ndcg_score([graded], [tied], k=10))


def test_groups_without_anything_right_are_left_out_and_counted():
    value, said = np.array([0.0, 1, 0, 0, 1, 0]), np.array([2.0, 1, 5, 4, 3, 2])
    scores = ranking_metrics(value, said, np.array([0, 2, 4, 4, 6]))
    assert scores["mrr"] == pytest.approx((1 / 2 + 1) / 2)
    assert scores["p_at_1"] == 0.5
    assert (scores["groups"], scores["groups_left_out"]) == (2, 2)
    nothing = ranking_metrics(np.zeros(2), np.zeros(2), np.array([0, 2]))
    assert math.isnan(nothing["map"])
    assert nothing["groups"] == 0


def test_the_baseline_is_chance():
    scores = ranking_baseline(np.array([1.0, 0, 0, 0]), np.array([0, 4]))
    assert scores["p_at_1"] == 1 / 4
    assert scores["mrr"] == scores["map"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_thousands_of_equals_are_no_trouble():
    value = np.zeros(5000)
    value[:2000] = 1
    assert 0.6 < ranking_baseline(value, np.array([0, 5000]))["mrr"] < 0.65
