"""Multi-label metrics: micro, macro and per-example F1, and exact match, equal to those of scikit-learn.

Shapes: N rows, C labels; truths and predictions are 0 or 1 for each row and label.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
from sklearn.metrics import f1_score, precision_score, recall_score

from unmask.core.records import Bits
from unmask.evaluation.metrics.classification import Scores


def multilabel_metrics(truth_NC: Bits, predicted_NC: Bits) -> Scores:
    """Micro F1 with its precision and recall, macro F1, F1 per example, and exact match of the whole set.

    The definitions are scikit-learn's (`average="micro"`, `"macro"`, `"samples"`). Micro counts all cells
    together. Macro is the mean over labels that occur, true or predicted. F1 per example is the mean over rows, where a
    correctly empty row counts as 1. Micro scores without any label are 0.
    """
    truth_NC, predicted_NC = _tables(truth_NC, predicted_NC)
    return MappingProxyType(
        {
            "micro_f1": float(f1_score(truth_NC, predicted_NC, average="micro", zero_division=0.0)),
            "micro_precision": float(precision_score(truth_NC, predicted_NC, average="micro", zero_division=0.0)),
            "micro_recall": float(recall_score(truth_NC, predicted_NC, average="micro", zero_division=0.0)),
            "macro_f1": float(f1_score(truth_NC, predicted_NC, average="macro", zero_division=math.nan)),
            "example_f1": float(f1_score(truth_NC, predicted_NC, average="samples", zero_division=1.0)),
            "exact_match": float((truth_NC == predicted_NC).all(axis=1).mean()),
        }
    )


def f1_by_label(truth_NC: Bits, predicted_NC: Bits) -> tuple[float, ...]:
    """The F1 of each label; NaN for a label that never occurs, true or predicted."""
    labels = truth_NC.shape[1]
    truth_NC, predicted_NC = _tables(truth_NC, predicted_NC)
    return tuple(map(float, f1_score(truth_NC, predicted_NC, average=None, zero_division=math.nan)))[:labels]


def multilabel_baseline(train_NC: Bits, truth_NC: Bits) -> Scores:
    """The baseline that predicts the labels of at least half of the training rows, or else the most frequent label."""
    share_C = train_NC.mean(axis=0)
    predicted_C = share_C >= min(0.5, float(share_C.max()))
    return multilabel_metrics(truth_NC, np.broadcast_to(predicted_C, truth_NC.shape).astype(np.uint8))


def _tables(truth_NC: Bits, predicted_NC: Bits) -> tuple[Bits, Bits]:
    """The tables for scikit-learn, which reads a single column as two classes: it gets an empty second column."""
    assert truth_NC.shape == predicted_NC.shape, (
        f"answers of shape {predicted_NC.shape} to truths of shape {truth_NC.shape}"
    )
    assert truth_NC.ndim == 2, f"a table of rows and labels is needed, got {truth_NC.ndim} dimensions"
    assert len(truth_NC) > 0, "no row to score"
    if truth_NC.shape[1] > 1:
        return truth_NC, predicted_NC
    return np.pad(truth_NC, ((0, 0), (0, 1))), np.pad(predicted_NC, ((0, 0), (0, 1)))
