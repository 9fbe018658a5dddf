"""Exact match and F1 of extractive answers, as SQuAD 1.1, SQuAD 2.0 and CMRC 2018 define them.

Each question has a set of correct answers (empty if unanswerable) and one prediction (empty for no answer). A score is
the best over the correct answers, averaged over the questions. Only texts are compared, not positions.
"""

# Q questions · 2: exact match, F1

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from unmask.core.records import Doubles
from unmask.evaluation.metrics.answer_match import (
    Language,
    cmrc_exact_match,
    cmrc_f1,
    language_of,
    squad1_f1,
    squad2_f1,
    squad_exact_match,
    squad_words,
)
from unmask.evaluation.metrics.classification import Scores

Truths: TypeAlias = Sequence[Sequence[str]]
"""The correct answers of each question; none if it is unanswerable."""
AnswerMetric: TypeAlias = Callable[[str, str], float]


class QADefinition(Enum):
    """The definition of exact match and F1."""

    SQUAD_1 = "SQuAD 1.1"
    SQUAD_2 = "SQuAD 2.0"
    CMRC = "CMRC 2018"


@dataclass(frozen=True, slots=True)
class Threshold:
    """No answer is predicted above this no-answer score, which gives this metric."""

    value: float
    score: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The best threshold for exact match and the best one for F1."""

    exact: Threshold
    f1: Threshold


def qa_definition_for(truths: Truths, passages: Iterable[str] = ()) -> QADefinition:
    """The definition for a task: CMRC if it is in Chinese, else SQuAD, 2.0 with unanswerable questions."""
    answers = [answer for each in truths for answer in each]
    if language_of([*answers, *passages]) is Language.CHINESE:
        return QADefinition.CMRC
    return QADefinition.SQUAD_1 if all(truths) else QADefinition.SQUAD_2


def score_answer(truths: Sequence[str], prediction: str, definition: QADefinition) -> tuple[float, float]:
    """Exact match and F1 of one question: the best over its correct answers.

    For an unanswerable question both are 1 if the prediction is empty (SQuAD 2.0; CMRC has no such questions). Text of
    punctuation alone, or of English articles alone, counts as empty; SQuAD 2.0 ignores such correct answers.
    """
    exact, f1 = _metrics_for(definition)
    if definition is QADefinition.SQUAD_2:
        truths = [truth for truth in truths if squad_words(truth)]
    if not truths:
        return exact("", prediction), exact("", prediction)
    return max(exact(truth, prediction) for truth in truths), max(f1(truth, prediction) for truth in truths)


def qa_metrics(truths: Truths, predictions: Sequence[str], definition: QADefinition) -> Scores:
    """F1 and exact match, in total and for answerable and unanswerable questions."""
    scores_Q2 = _score_all(truths, predictions, definition)
    has = np.array([bool(each) for each in truths])
    scores = _name_scores("answer_f1", "exact_match", scores_Q2)
    if has.any() and not has.all():
        scores |= _name_scores("has_answer_f1", "has_answer_exact", scores_Q2[has])
    if not has.all():
        scores |= _name_scores("no_answer_f1", "no_answer_exact", scores_Q2[~has])
    return MappingProxyType(scores)


def best_thresholds(
    truths: Truths, predictions: Sequence[str], no_answer_scores: Doubles, definition: QADefinition
) -> Thresholds:
    """The best thresholds of the no-answer score, found as in evaluate-v2.0.py.

    `predictions` are the best non-empty answers. Questions are answered in order of rising no-answer score: each adds
    the score of its answer, or loses the point of an unanswerable question. Of equal thresholds the lowest is taken. If
    never answering is best, the script returns 0, which fits probabilities; with scores below 0, the threshold is below
    all.
    """
    scores_Q2 = _score_all(truths, predictions, definition)
    order = np.argsort(no_answer_scores, kind="stable")
    has = np.array([bool(each) for each in truths])
    cost = np.array([-1.0 if answer else 0.0 for answer in predictions])
    gains_Q2 = np.where(has[:, None], scores_Q2, cost[:, None])[order]
    exact, f1 = (_best(gains_Q2[:, which], no_answer_scores[order], int((~has).sum())) for which in range(2))
    return Thresholds(exact, f1)


def apply_threshold(predictions: Sequence[str], no_answer_scores: Doubles, threshold: float) -> tuple[str, ...]:
    """The predictions, empty where the no-answer score is above the threshold."""
    return tuple(
        "" if above else answer for answer, above in zip(predictions, no_answer_scores > threshold, strict=True)
    )


def qa_baseline(truths: Truths, definition: QADefinition) -> Scores:
    """The baseline that never answers."""
    return qa_metrics(truths, [""] * len(truths), definition)


def _metrics_for(definition: QADefinition) -> tuple[AnswerMetric, AnswerMetric]:
    match definition:
        case QADefinition.SQUAD_1:
            return squad_exact_match, squad1_f1
        case QADefinition.SQUAD_2:
            return squad_exact_match, squad2_f1
        case QADefinition.CMRC:
            return cmrc_exact_match, cmrc_f1


def _score_all(truths: Truths, predictions: Sequence[str], definition: QADefinition) -> Doubles:
    assert len(truths) == len(predictions) > 0, f"{len(predictions)} answers to {len(truths)} questions"
    return np.array([score_answer(each, answer, definition) for each, answer in zip(truths, predictions, strict=True)])


def _name_scores(f1: str, exact: str, scores_Q2: Doubles) -> dict[str, float]:
    exact_mean, f1_mean = scores_Q2.mean(axis=0).tolist()
    return {f1: f1_mean, exact: exact_mean}


def _best(gains_Q: Doubles, no_answer_Q: Doubles, unanswerable: int) -> Threshold:
    """The best threshold; `gains_Q` and `no_answer_Q` are in order of rising no-answer score."""
    earned = np.cumsum([unanswerable, *gains_Q])[1:]  # summed in the order of the script, for equal rounding
    best = int(earned.argmax())
    if earned[best] > unanswerable:
        return Threshold(float(no_answer_Q[best]), float(earned[best]) / len(gains_Q))
    lowest = float(no_answer_Q[0])
    return Threshold(math.nextafter(lowest, -math.inf) if lowest < 0 else 0.0, unanswerable / len(gains_Q))
