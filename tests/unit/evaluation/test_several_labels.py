"""Several labels a row, against scikit-learn and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics as peer

from unmask.core.records import Bits
from unmask.evaluation.metrics.multilabel import f1_by_label, multilabel_baseline, multilabel_metrics


def table(*rows: str) -> Bits:
    return np.array([[int(cell) for cell in row] for row in rows], dtype=np.uint8)


def test_random_tables_as_scikit_learn():
    draw = np.random.default_rng(1)
    for density in (0.05, 0.3, 0.8):
        for _ in range(15):
            truth, said = (draw.random((2, 12, 4)) < density).astype(np.uint8)
            scores = multilabel_metrics(truth, said)
            assert scores["exact_match"] == pytest.approx(peer.accuracy_score(truth, said))
            for name, score in (
                ("f1", peer.f1_score),
                ("precision", peer.precision_score),
                ("recall", peer.recall_score),
            ):
                expected = score(truth, said, average="micro", zero_division=0)
                assert scores[f"micro_{name}"] == pytest.approx(expected)
            each = peer.f1_score(truth, said, average=None, zero_division=0)
            occurs = (truth | said).any(axis=0)
            if occurs.any():
                assert scores["macro_f1"] == pytest.approx(each[occurs].mean())
            rows = peer.f1_score(truth, said, average="samples", zero_division=1)
            assert scores["example_f1"] == pytest.approx(rows)
            assert np.nan_to_num(f1_by_label(truth, said)) == pytest.approx(each)


def test_a_table_by_hand():
    scores = multilabel_metrics(table("110", "001", "000"), table("100", "011", "000"))
    assert scores["exact_match"] == pytest.approx(1 / 3)
    assert scores["micro_precision"] == scores["micro_recall"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((1 + 0 + 1) / 3)
    assert scores["example_f1"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)  # rightly nothing is right


def test_where_no_label_occurs_nothing_is_made_up():
    scores = multilabel_metrics(table("00", "00"), table("00", "00"))
    assert scores["exact_match"] == scores["example_f1"] == 1
    assert scores["micro_f1"] == 0
    assert math.isnan(scores["macro_f1"])
    assert all(map(math.isnan, f1_by_label(table("00"), table("00"))))


def test_a_single_label_is_a_table_too():
    truth, said = table("1", "1", "0", "0"), table("1", "0", "1", "0")
    assert multilabel_metrics(truth, said) == {
        "exact_match": 0.5,
        "micro_f1": 0.5,
        "micro_precision": 0.5,
        "micro_recall": 0.5,
        "macro_f1": 0.5,
        "example_f1": 0.5,
    }
    assert f1_by_label(truth, said) == (0.5,)


def test_the_baseline_says_the_frequent_labels_or_else_the_most_frequent_one():
    assert multilabel_baseline(table("110", "100"), table("110", "110"))["exact_match"] == 1
    rare = multilabel_baseline(table("100", "100", "010", "000", "000"), table("100", "000"))
    assert rare["micro_recall"] == 1
    assert rare["micro_precision"] == 0.5
