"""Scores of answers about whole rows, as the papers of the field report them.

What arrives: true and said classes, or true and said numbers. What leaves: scores by name, between -1 and 1; the
root mean square error in the units of the numbers.
What never happens here: a score made up where none is defined. It is not a number then, and `told` says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, root_mean_squared_error

from unmask.records import Amounts, Ints

Scores = Mapping[str, float]
NAMES = MappingProxyType(
    {
        "accuracy": "accuracy",
        "macro_f1": "macro F1",
        "f1": "F1",
        "matthews": "Matthews correlation",
        "pearson": "Pearson correlation",
        "spearman": "Spearman correlation",
        "rmse": "root mean square error",
    }
)
"""What a person calls each score."""


def classification(truth: Ints, said: Ints, classes: int) -> Scores:
    """Accuracy, F1 averaged over the classes that occur, Matthews' correlation; of two classes, the F1 of the second.

    A class that is never said has an F1 of 0. Matthews' correlation is 0 where only one class is said or true.
    """
    _need_rows(truth, said)
    scores = {
        "accuracy": float(accuracy_score(truth, said)),
        "macro_f1": float(f1_score(truth, said, average="macro", zero_division=0.0)),
    }
    if classes == 2:
        scores["f1"] = float(f1_score(truth, said, pos_label=1, average="binary", zero_division=0.0))
    # Where nothing but one class occurs on both sides, scikit-learn warns about a matrix of one cell.
    alone = len(np.union1d(truth, said)) == 1
    scores["matthews"] = 0.0 if alone else float(matthews_corrcoef(truth, said))
    return MappingProxyType(scores)


def regression(truth: Amounts, said: Amounts) -> Scores:
    """The correlations of Pearson and Spearman, and the root mean square error.

    Numbers that are all the same correlate with nothing: the two correlations are not numbers then.
    """
    _need_rows(truth, said)
    varies = len(truth) > 1 and bool(np.ptp(truth) > 0) and bool(np.ptp(said) > 0)
    return MappingProxyType(
        {
            "pearson": float(pearsonr(truth, said).statistic) if varies else math.nan,
            "spearman": float(spearmanr(truth, said).statistic) if varies else math.nan,
            "rmse": float(root_mean_squared_error(truth, said)),
        }
    )


def told(scores: Scores, labels: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Scores as a person reads them: name and value. With two labels, F1 says whose it is."""
    return [(_name(name, labels), _value(scores[name])) for name in NAMES if name in scores]


def _name(name: str, labels: Sequence[str]) -> str:
    return f"F1 of {labels[1]}" if name == "f1" and len(labels) == 2 else NAMES[name]


def _value(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "undefined: all the same"


def _need_rows(truth: Ints | Amounts, said: Ints | Amounts) -> None:
    assert len(truth) == len(said) > 0, f"{len(said)} answers to {len(truth)} questions"
