"""Scores against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unmask.evaluate.metrics import classification, regression, told


def test_two_classes_by_hand():
    truth, said = np.array([1, 1, 1, 0, 0, 0, 0, 0]), np.array([1, 1, 0, 1, 0, 0, 0, 0])  # 2 TP, 1 FN, 1 FP, 4 TN
    scores = classification(truth, said, 2)
    assert scores["accuracy"] == 6 / 8
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 8 / 10) / 2)
    assert scores["matthews"] == pytest.approx((2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5))


def test_the_second_class_is_the_positive_one_even_if_it_never_occurs():
    scores = classification(np.zeros(4, np.int64), np.zeros(4, np.int64), 2)
    assert scores == {"accuracy": 1.0, "macro_f1": 1.0, "f1": 0.0, "matthews": 0.0}


def test_more_classes_have_no_positive_one_and_absent_ones_do_not_count():
    scores = classification(np.array([0, 1, 1]), np.array([0, 1, 1]), 5)
    assert scores == {"accuracy": 1.0, "macro_f1": 1.0, "matthews": 1.0}
    assert classification(np.array([0, 1]), np.array([2, 2]), 3)["macro_f1"] == 0


def test_numbers_by_hand():
    scores = regression(np.array([1.0, 2, 3, 4]), np.array([1.0, 4, 9, 16]))
    assert scores["spearman"] == pytest.approx(1)
    assert scores["pearson"] == pytest.approx(25 / math.sqrt(5 * 129))
    assert scores["rmse"] == pytest.approx(math.sqrt((0 + 4 + 36 + 144) / 4))


def test_what_is_not_defined_is_said_to_be_so():
    scores = regression(np.array([1.0, 2]), np.array([1.5, 1.5]))
    assert math.isnan(scores["pearson"])
    assert math.isnan(scores["spearman"])
    assert scores["rmse"] == 0.5
    assert dict(told(scores))["Pearson correlation"] == "undefined: all the same"
    assert math.isnan(regression(np.array([1.0]), np.array([1.0]))["pearson"])


def test_scores_are_told_in_words():
    scores = classification(np.array([0, 1]), np.array([0, 1]), 2)
    assert told(scores, ("bad", "good"))[0] == ("accuracy", "1.0000")
    assert ("F1 of good", "1.0000") in told(scores, ("bad", "good"))
