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

from unmask.evaluate import cmrc, squad
from unmask.evaluate.language import Language, language_of
from unmask.evaluate.metrics import Scores
from unmask.records import Amounts

Truths: TypeAlias = Sequence[Sequence[str]]
"""The right answers of each question; none where there is no answer."""
Judge: TypeAlias = Callable[[str, str], float]


class Reading(Enum):
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


def reading_of(truths: Truths, passages: Iterable[str] = ()) -> Reading:
    """The definition for a task: CMRC's if it is in Chinese, else SQuAD's, 2.0 if some question has no answer."""
    answers = [answer for each in truths for answer in each]
    if language_of([*answers, *passages]) is Language.CHINESE:
        return Reading.CMRC
    return Reading.SQUAD_1 if all(truths) else Reading.SQUAD_2


def judged(truths: Sequence[str], said: str, reading: Reading) -> tuple[float, float]:
    """Exact match and F1 of one question: the best over its right answers.

    Where there is no answer, both are 1 if nothing is said (SQuAD 2.0; CMRC knows no such questions). Punctuation alone
    says nothing, nor do articles in English. SQuAD 2.0 passes over right answers that say nothing in this sense.
    """
    exact, f1 = _judges(reading)
    if reading is Reading.SQUAD_2:
        truths = [truth for truth in truths if squad.words(truth)]
    if not truths:
        return exact("", said), exact("", said)
    return max(exact(truth, said) for truth in truths), max(f1(truth, said) for truth in truths)


def spans(truths: Truths, said: Sequence[str], reading: Reading) -> Scores:
    """F1 and exact match, and both again for the questions with an answer and for those without, if there are such."""
    scores_Q2 = _all_judged(truths, said, reading)
    has = np.array([bool(each) for each in truths])
    scores = _named("answer_f1", "exact_match", scores_Q2)
    if has.any() and not has.all():
        scores |= _named("has_answer_f1", "has_answer_exact", scores_Q2[has])
    if not has.all():
        scores |= _named("no_answer_f1", "no_answer_exact", scores_Q2[~has])
    return MappingProxyType(scores)


def best_thresholds(truths: Truths, said: Sequence[str], doubt: Amounts, reading: Reading) -> Thresholds:
    """The thresholds of the no-answer score `doubt` that earn most, found as evaluate-v2.0.py finds them.

    `said` are the answers that would be given if one had to be. Questions are taken in order of rising doubt: each that
    is answered adds what its answer earns, and takes away the point that silence earned if there is no answer. Among
    equals the lowest threshold wins. Where never answering is best, the script says 0, which fits probabilities; if a
    doubt is below 0, the threshold is put below them all instead.
    """
    scores_Q2 = _all_judged(truths, said, reading)
    order = np.argsort(doubt, kind="stable")
    has = np.array([bool(each) for each in truths])
    cost = np.array([-1.0 if answer else 0.0 for answer in said])
    gains_Q2 = np.where(has[:, None], scores_Q2, cost[:, None])[order]
    exact, f1 = (_best(gains_Q2[:, which], doubt[order], int((~has).sum())) for which in range(2))
    return Thresholds(exact, f1)


def hold_back(said: Sequence[str], doubt: Amounts, threshold: float) -> tuple[str, ...]:
    """The answers, without those whose doubt is above the threshold."""
    return tuple("" if above else answer for answer, above in zip(said, doubt > threshold, strict=True))


def baseline(truths: Truths, reading: Reading) -> Scores:
    """What never giving an answer scores: the share of questions without one."""
    return spans(truths, [""] * len(truths), reading)


def _judges(reading: Reading) -> tuple[Judge, Judge]:
    match reading:
        case Reading.SQUAD_1:
            return squad.exact, squad.f1_first
        case Reading.SQUAD_2:
            return squad.exact, squad.f1_second
        case Reading.CMRC:
            return cmrc.exact, cmrc.f1


def _all_judged(truths: Truths, said: Sequence[str], reading: Reading) -> Amounts:
    assert len(truths) == len(said) > 0, f"{len(said)} answers to {len(truths)} questions"
    return np.array([judged(each, answer, reading) for each, answer in zip(truths, said, strict=True)])


def _named(f1: str, exact: str, scores_Q2: Amounts) -> dict[str, float]:
    exact_mean, f1_mean = scores_Q2.mean(axis=0).tolist()
    return {f1: f1_mean, exact: exact_mean}


def _best(gains_Q: Amounts, doubt_Q: Amounts, unanswerable: int) -> Threshold:
    """`gains_Q` and `doubt_Q` come in order of rising doubt."""
    earned = np.cumsum([unanswerable, *gains_Q])[1:]  # added up in the order of the script, to the last digit
    best = int(earned.argmax())
    if earned[best] > unanswerable:
        return Threshold(float(doubt_Q[best]), float(earned[best]) / len(gains_Q))
    lowest = float(doubt_Q[0])
    return Threshold(math.nextafter(lowest, -math.inf) if lowest < 0 else 0.0, unanswerable / len(gains_Q))
