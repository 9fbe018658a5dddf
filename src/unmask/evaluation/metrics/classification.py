"""Metrics of classification, regression and multiple choice as in GLUE and CLUE, and the display of all metrics.

Undefined scores are NaN. A baseline is the score of a prediction that ignores the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, root_mean_squared_error

from unmask.core.records import Doubles, Ints

Scores = Mapping[str, float]
"""Scores by name; the first one is the main metric."""
METRIC_NAMES = MappingProxyType(
    {
        "accuracy": "accuracy",
        "macro_f1": "macro F1",
        "f1": "F1",
        "matthews": "Matthews correlation",
        "pearson": "Pearson correlation",
        "spearman": "Spearman correlation",
        "rmse": "root mean square error",
        "exact_match": "exact match",
        "micro_f1": "micro F1",
        "micro_precision": "micro precision",
        "micro_recall": "micro recall",
        "example_f1": "F1 per example",
        "entity_f1": "entity F1",
        "entity_precision": "entity precision",
        "entity_recall": "entity recall",
        "entity_macro_f1": "entity F1, mean over types",
        "answer_f1": "answer F1",
        "has_answer_exact": "exact match where there is an answer",
        "has_answer_f1": "answer F1 where there is an answer",
        "no_answer_exact": "exact match where there is none",
        "no_answer_f1": "answer F1 where there is none",
        "best_exact": "exact match at the best threshold",
        "best_f1": "answer F1 at the best threshold",
        "map": "mean average precision",
        "mrr": "mean reciprocal rank",
        "p_at_1": "precision at 1",
        "ndcg_at_10": "nDCG at 10",
        "groups": "groups scored",
        "groups_left_out": "groups left out: no relevant candidate",
        "bleu": "BLEU",
        "chrf": "chrF",
        "rouge_1": "ROUGE-1",
        "rouge_2": "ROUGE-2",
        "rouge_l": "ROUGE-L",
    }
)
"""Display names."""
_COUNTS = frozenset({"groups", "groups_left_out"})
_CORRELATIONS = frozenset({"pearson", "spearman"})


def classification_metrics(truth: Ints, predicted: Ints, num_classes: int) -> Scores:
    """Accuracy, F1 averaged over the classes that occur, Matthews' correlation; of two classes, the F1 of the second.

    A class that is never predicted has an F1 of 0. Matthews' correlation is 0 if only one class is predicted or true.
    """
    _check_rows(truth, predicted)
    scores = {
        "accuracy": float(accuracy_score(truth, predicted)),
        "macro_f1": float(f1_score(truth, predicted, average="macro", zero_division=0.0)),
    }
    if num_classes == 2:
        scores["f1"] = float(f1_score(truth, predicted, pos_label=1, average="binary", zero_division=0.0))
    # scikit-learn warns about a confusion matrix of one cell
    single_class = len(np.union1d(truth, predicted)) == 1
    scores["matthews"] = 0.0 if single_class else float(matthews_corrcoef(truth, predicted))
    return MappingProxyType(scores)


def classification_baseline(train: Ints, truth: Ints, classes: int) -> Scores:
    """The majority-class baseline."""
    majority = int(np.bincount(train, minlength=classes).argmax())
    return classification_metrics(truth, np.full_like(truth, majority), classes)


def choice_metrics(truth: Ints, predicted: Ints) -> Scores:
    """The accuracy, as in C3, ChID and SWAG."""
    _check_rows(truth, predicted)
    return MappingProxyType({"accuracy": float(np.mean(truth == predicted))})


def choice_baseline(choices: Ints) -> Scores:
    """The expected accuracy of random guessing."""
    return MappingProxyType({"accuracy": float(np.mean(1 / choices))})


def regression_metrics(truth: Doubles, predicted: Doubles) -> Scores:
    """The correlations of Pearson and Spearman, and the root mean square error.

    Correlations of a constant are NaN.
    """
    _check_rows(truth, predicted)
    varies = len(truth) > 1 and bool(np.ptp(truth) > 0) and bool(np.ptp(predicted) > 0)
    return MappingProxyType(
        {
            "pearson": float(pearsonr(truth, predicted).statistic) if varies else math.nan,
            "spearman": float(spearmanr(truth, predicted).statistic) if varies else math.nan,
            "rmse": float(root_mean_squared_error(truth, predicted)),
        }
    )


def regression_baseline(train: Doubles, truth: Doubles) -> Scores:
    """The baseline that predicts the mean of the training numbers."""
    return regression_metrics(truth, np.full(len(truth), float(np.mean(train))))


def format_scores(scores: Scores, labels: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Display names and values of scores. With two labels, F1 names the positive one."""
    return [(_name(name, labels), _value(name, value)) for name, value in scores.items() if name in METRIC_NAMES]


def _name(name: str, labels: Sequence[str]) -> str:
    return f"F1 of {labels[1]}" if name == "f1" and len(labels) == 2 else METRIC_NAMES[name]


def _value(name: str, value: float) -> str:
    if name in _COUNTS:
        return f"{value:,.0f}"
    if math.isfinite(value):
        return f"{value:.4f}"
    return "undefined: all the same" if name in _CORRELATIONS else "undefined: nothing to score"


def _check_rows(truth: Ints | Doubles, predicted: Ints | Doubles) -> None:
    assert len(truth) == len(predicted) > 0, f"{len(predicted)} answers to {len(truth)} questions"
