"""Scores of answers about whole rows, as GLUE and CLUE define them, and how every kind of score is told to a person.

What arrives: true and said classes, or true and said numbers. What leaves: scores by name, between -1 and 1; the
root mean square error in the units of the numbers. A baseline is what an answer that reads nothing would score.
What never happens here: a score made up where none is defined. It is not a number then, and `told` says so.

Other kinds of answers have their own modules: labels, tags, spans, ranking, writing.
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
"""Scores by name; the first is the one to compare by."""
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
        "groups": "groups judged",
        "groups_left_out": "groups left out: nothing right in them",
        "bleu": "BLEU",
        "chrf": "chrF",
        "rouge_1": "ROUGE-1",
        "rouge_2": "ROUGE-2",
        "rouge_l": "ROUGE-L",
    }
)
"""What a person calls each score."""
_COUNTS = frozenset({"groups", "groups_left_out"})
_CORRELATIONS = frozenset({"pearson", "spearman"})


def classification_metrics(truth: Ints, predicted: Ints, num_classes: int) -> Scores:
    """Accuracy, F1 averaged over the classes that occur, Matthews' correlation; of two classes, the F1 of the second.

    A class that is never said has an F1 of 0. Matthews' correlation is 0 where only one class is said or true.
    """
    _check_rows(truth, predicted)
    scores = {
        "accuracy": float(accuracy_score(truth, predicted)),
        "macro_f1": float(f1_score(truth, predicted, average="macro", zero_division=0.0)),
    }
    if num_classes == 2:
        scores["f1"] = float(f1_score(truth, predicted, pos_label=1, average="binary", zero_division=0.0))
    # Where nothing but one class occurs on both sides, scikit-learn warns about a matrix of one cell.
    alone = len(np.union1d(truth, predicted)) == 1
    scores["matthews"] = 0.0 if alone else float(matthews_corrcoef(truth, predicted))
    return MappingProxyType(scores)


def classification_baseline(train: Ints, truth: Ints, classes: int) -> Scores:
    """What always saying the class that is most frequent among the `known` truths scores; of equals, the first."""
    majority = int(np.bincount(train, minlength=classes).argmax())
    return classification_metrics(truth, np.full_like(truth, majority), classes)


def choice_metrics(truth: Ints, predicted: Ints) -> Scores:
    """The share of questions whose right choice was said: the accuracy of C3, ChID and SWAG."""
    _check_rows(truth, predicted)
    return MappingProxyType({"accuracy": float(np.mean(truth == predicted))})


def choice_baseline(choices: Ints) -> Scores:
    """What guessing scores on average, given how many choices each question has."""
    return MappingProxyType({"accuracy": float(np.mean(1 / choices))})


def regression_metrics(truth: Doubles, predicted: Doubles) -> Scores:
    """The correlations of Pearson and Spearman, and the root mean square error.

    Numbers that are all the same correlate with nothing: the two correlations are not numbers then.
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
    """What always saying the mean of the `known` numbers scores: it correlates with nothing."""
    return regression_metrics(truth, np.full(len(truth), float(np.mean(train))))


def format_scores(scores: Scores, labels: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Scores as a person reads them: name and value. With two labels, F1 says whose it is."""
    return [(_name(name, labels), _value(name, value)) for name, value in scores.items() if name in METRIC_NAMES]


def _name(name: str, labels: Sequence[str]) -> str:
    return f"F1 of {labels[1]}" if name == "f1" and len(labels) == 2 else METRIC_NAMES[name]


def _value(name: str, value: float) -> str:
    if name in _COUNTS:
        return f"{value:,.0f}"
    if math.isfinite(value):
        return f"{value:.4f}"
    return "undefined: all the same" if name in _CORRELATIONS else "undefined: nothing to judge"


def _check_rows(truth: Ints | Doubles, said: Ints | Doubles) -> None:
    assert len(truth) == len(said) > 0, f"{len(said)} answers to {len(truth)} questions"
