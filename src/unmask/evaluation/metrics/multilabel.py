"""Scores of answers that give a row several labels, none of them, or all.

What arrives: a table of truths and a table of answers, with a 0 or 1 for each row and label. What leaves: scores by
name, equal to scikit-learn's. What never happens here: choosing from how much certainty on a label is said.
"""

# N rows · C labels

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
from sklearn.metrics import f1_score, precision_score, recall_score

from unmask.core.records import Bits
from unmask.evaluation.metrics.classification import Scores


def multilabel_metrics(truth_NC: Bits, predicted_NC: Bits) -> Scores:
    """Micro F1 with its precision and recall, macro F1, F1 per example, and exact match of the whole set.

    The definitions are scikit-learn's (`average="micro"`, `"macro"`, `"samples"`). Micro counts all cells of the table
    together. Macro is the mean over the labels that occur, true or said. F1 per example is the mean over rows, where
    a row that rightly has no label counts as 1. What would divide nothing by nothing in micro is 0.
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
    """The F1 of each label alone; not a number for a label that is neither true nor said anywhere."""
    labels = truth_NC.shape[1]
    truth_NC, predicted_NC = _tables(truth_NC, predicted_NC)
    return tuple(map(float, f1_score(truth_NC, predicted_NC, average=None, zero_division=math.nan)))[:labels]


def multilabel_baseline(train_NC: Bits, truth_NC: Bits) -> Scores:
    """What one set of labels, said of every row, scores: those that at least half of the `known` rows have.

    Where no label is that frequent, the most frequent one is said: saying nothing at all would make every F1 0.
    """
    share_C = train_NC.mean(axis=0)
    said_C = share_C >= min(0.5, float(share_C.max()))
    return multilabel_metrics(truth_NC, np.broadcast_to(said_C, truth_NC.shape).astype(np.uint8))


def _tables(truth_NC: Bits, said_NC: Bits) -> tuple[Bits, Bits]:
    """The two tables, fit for scikit-learn: it reads a lone column as two classes, so it gets an empty one beside."""
    assert truth_NC.shape == said_NC.shape, f"answers of shape {said_NC.shape} to truths of shape {truth_NC.shape}"
    assert truth_NC.ndim == 2, f"a table of rows and labels is needed, got {truth_NC.ndim} dimensions"
    assert len(truth_NC) > 0, "no row to judge"
    if truth_NC.shape[1] > 1:
        return truth_NC, said_NC
    return np.pad(truth_NC, ((0, 0), (0, 1))), np.pad(said_NC, ((0, 0), (0, 1)))
