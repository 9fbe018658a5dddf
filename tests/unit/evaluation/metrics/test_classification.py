"""Scores against values computed by hand and by scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as peer

from unmask.evaluation.metrics.classification import (
    METRIC_NAMES,
    choice_baseline,
    choice_metrics,
    classification_baseline,
    classification_metrics,
    format_scores,
    regression_baseline,
    regression_metrics,
)


def test_two_classes_by_hand():
    truth, said = np.array([1, 1, 1, 0, 0, 0, 0, 0]), np.array([1, 1, 0, 1, 0, 0, 0, 0])  # 2 TP, 1 FN, 1 FP, 4 TN
    scores = classification_metrics(truth, said, 2)
    assert scores["accuracy"] == 6 / 8
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 8 / 10) / 2)
    assert scores["matthews"] == pytest.approx((2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5))


def test_the_second_class_is_the_positive_one_even_if_it_never_occurs():
    scores = classification_metrics(np.zeros(4, np.int64), np.zeros(4, np.int64), 2)
    assert scores == {"accuracy": 1.0, "macro_f1": 1.0, "f1": 0.0, "matthews": 0.0}


def test_more_classes_have_no_positive_one_and_absent_ones_do_not_count():
    scores = classification_metrics(np.array([0, 1, 1]), np.array([0, 1, 1]), 5)
    assert scores == {"accuracy": 1.0, "macro_f1": 1.0, "matthews": 1.0}
    assert classification_metrics(np.array([0, 1]), np.array([2, 2]), 3)["macro_f1"] == 0


def test_numbers_by_hand():
    scores = regression_metrics(np.array([1.0, 2, 3, 4]), np.array([1.0, 4, 9, 16]))
    assert scores["spearman"] == pytest.approx(1)
    assert scores["pearson"] == pytest.approx(25 / math.sqrt(5 * 129))
    assert scores["rmse"] == pytest.approx(math.sqrt((0 + 4 + 36 + 144) / 4))


def test_what_is_not_defined_is_said_to_be_so():
    scores = regression_metrics(np.array([1.0, 2]), np.array([1.5, 1.5]))
    assert math.isnan(scores["pearson"])
    assert math.isnan(scores["spearman"])
    assert scores["rmse"] == 0.5
    assert dict(format_scores(scores))["Pearson correlation"] == "undefined: all the same"
    assert math.isnan(regression_metrics(np.array([1.0]), np.array([1.0]))["pearson"])


def test_scores_are_told_in_words():
    scores = classification_metrics(np.array([0, 1]), np.array([0, 1]), 2)
    assert format_scores(scores, ("bad", "good"))[0] == ("accuracy", "1.0000")
    assert ("F1 of good", "1.0000") in format_scores(scores, ("bad", "good"))


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_random_classes_as_scikit_learn(classes: int):
    draw = np.random.default_rng(classes)
    for _ in range(25):
        truth, said = draw.integers(0, classes, (2, 30))
        scores = classification_metrics(truth, said, classes)
        assert scores["accuracy"] == pytest.approx(peer.accuracy_score(truth, said))
        assert scores["macro_f1"] == pytest.approx(peer.f1_score(truth, said, average="macro", zero_division=0))
        assert scores["matthews"] == pytest.approx(peer.matthews_corrcoef(truth, said))


def test_random_numbers_as_scipy():
    draw = np.random.default_rng(0)
    for _ in range(25):
        truth, said = draw.integers(0, 6, (2, 20)).astype(np.float64)  # with many ties
        scores = regression_metrics(truth, said)
        assert scores["pearson"] == pytest.approx(stats.pearsonr(truth, said)[0])
        assert scores["spearman"] == pytest.approx(stats.spearmanr(truth, said)[0])
        assert scores["rmse"] == pytest.approx(math.sqrt(peer.mean_squared_error(truth, said)))


def test_the_majority_is_counted_on_known_rows_and_judged_on_others():
    scores = classification_baseline(np.array([2, 2, 0]), np.array([0, 0, 0, 2]), 3)
    assert scores["accuracy"] == 1 / 4
    assert scores["matthews"] == 0


def test_the_mean_guess_is_off_by_the_spread():
    truth = np.array([0.0, 2.0])
    scores = regression_baseline(np.array([1.0, 1.0]), truth)
    assert scores["rmse"] == 1
    assert math.isnan(scores["pearson"])


def test_choices():
    assert choice_metrics(np.array([0, 3, 1]), np.array([0, 3, 2]))["accuracy"] == pytest.approx(2 / 3)
    assert choice_baseline(np.array([2, 4]))["accuracy"] == pytest.approx((1 / 2 + 1 / 4) / 2)


def test_every_score_has_a_name_of_its_own_and_counts_are_told_as_counts():
    assert len(set(METRIC_NAMES.values())) == len(METRIC_NAMES)
    assert format_scores({"map": math.nan, "groups": 1200.0}) == [
        ("mean average precision", "undefined: nothing to score"),
        ("groups scored", "1,200"),
    ]
