"""Scores of answers that are copied from a passage, as SQuAD 1.1, SQuAD 2.0 and CMRC 2018 define them.

What arrives: for each question, all answers that count as right (none where the passage holds no answer) and the said
one (empty for "no answer"). What leaves: exact match and F1, each the best over the right answers, as means over the
questions. What never happens here: looking at positions. Only the texts are compared.
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
from unmask.evaluation.metrics import cmrc, squad
from unmask.evaluation.metrics.classification import Scores
from unmask.evaluation.metrics.text_language import Language, language_of

Truths: TypeAlias = Sequence[Sequence[str]]
"""The right answers of each question; none where there is no answer."""
AnswerMetric: TypeAlias = Callable[[str, str], float]


class QADefinition(Enum):
    """Whose definition of a right answer holds."""

    SQUAD_1 = "SQuAD 1.1"
    SQUAD_2 = "SQuAD 2.0"
    CMRC = "CMRC 2018"


@dataclass(frozen=True, slots=True)
class Threshold:
    """No answer is said where its score is above `value`; `score` is what that earns."""

    value: float
    score: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The best threshold for exact match and the best one for F1."""

    exact: Threshold
    f1: Threshold


def qa_definition_for(truths: Truths, passages: Iterable[str] = ()) -> QADefinition:
    """The definition for a task: CMRC's if it is in Chinese, else SQuAD's, 2.0 if some question has no answer."""
    answers = [answer for each in truths for answer in each]
    if language_of([*answers, *passages]) is Language.CHINESE:
        return QADefinition.CMRC
    return QADefinition.SQUAD_1 if all(truths) else QADefinition.SQUAD_2


def score_answer(truths: Sequence[str], prediction: str, definition: QADefinition) -> tuple[float, float]:
    """Exact match and F1 of one question: the best over its right answers.

    Where there is no answer, both are 1 if nothing is said (SQuAD 2.0; CMRC knows no such questions). Punctuation alone
    says nothing, nor do articles in English. SQuAD 2.0 passes over right answers that say nothing in this sense.
    """
    exact, f1 = _metrics_for(definition)
    if definition is QADefinition.SQUAD_2:
        truths = [truth for truth in truths if squad.normalized_words(truth)]
    if not truths:
        return exact("", prediction), exact("", prediction)
    return max(exact(truth, prediction) for truth in truths), max(f1(truth, prediction) for truth in truths)


def qa_metrics(truths: Truths, predictions: Sequence[str], definition: QADefinition) -> Scores:
    """F1 and exact match, and both again for the questions with an answer and for those without, if there are such."""
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
    """The thresholds of the no-answer score `doubt` that earn most, found as evaluate-v2.0.py finds them.

    `said` are the answers that would be given if one had to be. Questions are taken in order of rising doubt: each that
    is answered adds what its answer earns, and takes away the point that silence earned if there is no answer. Among
    equals the lowest threshold wins. Where never answering is best, the script says 0, which fits probabilities; if a
    doubt is below 0, the threshold is put below them all instead.
    """
    scores_Q2 = _score_all(truths, predictions, definition)
    order = np.argsort(no_answer_scores, kind="stable")
    has = np.array([bool(each) for each in truths])
    cost = np.array([-1.0 if answer else 0.0 for answer in predictions])
    gains_Q2 = np.where(has[:, None], scores_Q2, cost[:, None])[order]
    exact, f1 = (_best(gains_Q2[:, which], no_answer_scores[order], int((~has).sum())) for which in range(2))
    return Thresholds(exact, f1)


def apply_threshold(predictions: Sequence[str], no_answer_scores: Doubles, threshold: float) -> tuple[str, ...]:
    """The answers, without those whose doubt is above the threshold."""
    return tuple(
        "" if above else answer for answer, above in zip(predictions, no_answer_scores > threshold, strict=True)
    )


def qa_baseline(truths: Truths, definition: QADefinition) -> Scores:
    """What never giving an answer scores: the share of questions without one."""
    return qa_metrics(truths, [""] * len(truths), definition)


def _metrics_for(reading: QADefinition) -> tuple[AnswerMetric, AnswerMetric]:
    match reading:
        case QADefinition.SQUAD_1:
            return squad.exact_match, squad.f1_squad1
        case QADefinition.SQUAD_2:
            return squad.exact_match, squad.f1_squad2
        case QADefinition.CMRC:
            return cmrc.exact_match, cmrc.f1


def _score_all(truths: Truths, said: Sequence[str], reading: QADefinition) -> Doubles:
    assert len(truths) == len(said) > 0, f"{len(said)} answers to {len(truths)} questions"
    return np.array([score_answer(each, answer, reading) for each, answer in zip(truths, said, strict=True)])


def _name_scores(f1: str, exact: str, scores_Q2: Doubles) -> dict[str, float]:
    exact_mean, f1_mean = scores_Q2.mean(axis=0).tolist()
    return {f1: f1_mean, exact: exact_mean}


def _best(gains_Q: Doubles, doubt_Q: Doubles, unanswerable: int) -> Threshold:
    """`gains_Q` and `doubt_Q` come in order of rising doubt."""
    earned = np.cumsum([unanswerable, *gains_Q])[1:]  # added up in the order of the script, to the last digit
    best = int(earned.argmax())
    if earned[best] > unanswerable:
        return Threshold(float(doubt_Q[best]), float(earned[best]) / len(gains_Q))
    lowest = float(doubt_Q[0])
    return Threshold(math.nextafter(lowest, -math.inf) if lowest < 0 else 0.0, unanswerable / len(gains_Q))
