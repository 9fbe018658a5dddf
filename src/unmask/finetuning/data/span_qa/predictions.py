"""Predictions of extractive QA, and the submission files of SQuAD and CMRC.

An answer is cut out of the original passage by character offsets and never detokenized.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.core.io.atomic import write_text
from unmask.core.ragged import offsets
from unmask.core.records import Floats
from unmask.data.tokenize.encoder import EncodedText
from unmask.finetuning.data.span_qa.decode import ScoredSpan, best_spans
from unmask.finetuning.data.span_qa.questions import QAExample
from unmask.finetuning.data.span_qa.windows import PassageWindows, piece_between

NUM_BEST, NUM_WRITTEN = 20, 3
"""The n-best answers that a prediction keeps, and how many of them are written."""
SUBMISSION_FILE, NO_ANSWER_FILE = "submission.json", "na_prob.json"


@dataclass(frozen=True, slots=True)
class SpanCandidate:
    """A piece of the passage, the offset of its first character, and its score."""

    text: str
    start: int
    score: float


@dataclass(frozen=True, slots=True)
class QAPrediction:
    """The n-best answers to a question, and the score of no answer."""

    id: str
    best: tuple[SpanCandidate, ...]
    """Distinct texts, best first; empty only for a passage without tokens."""
    null_score: float
    """The score of [CLS] as start and end, in the window where it is lowest."""
    threshold: float = math.inf
    """No answer is predicted above this no-answer score; infinite if every question has an answer."""

    @property
    def text(self) -> str:
        """The best answer, whatever the threshold."""
        return self.best[0].text if self.best else ""

    @property
    def no_answer_score(self) -> float:
        """The score of no answer minus that of the best answer."""
        return self.null_score - self.best[0].score if self.best else self.null_score

    @property
    def prediction(self) -> str:
        """The best answer, or empty for no answer."""
        return "" if self.no_answer_score > self.threshold else self.text

    def probabilities(self) -> tuple[float, ...]:
        """The probability of each candidate, and last that of no answer where that is possible."""
        null = [self.null_score] if math.isfinite(self.threshold) or not self.best else []
        rivals = [one.score for one in self.best] + null
        weights = [math.exp(score - max(rivals)) for score in rivals]
        return tuple(weight / sum(weights) for weight in weights)

    def to_json(self) -> dict[str, object]:
        """The prediction with its position and probability, and the best candidates."""
        likely = [round(share, 6) for share in self.probabilities()]
        shown = list(zip(self.best, likely, strict=False))[:NUM_WRITTEN]
        best = [{"text": one.text, "start": one.start, "probability": share} for one, share in shown]
        chosen = (
            {"start": self.best[0].start, "probability": likely[0]} if self.prediction else {"probability": likely[-1]}
        )
        return {"prediction": self.prediction, **chosen, "no_answer": round(self.no_answer_score, 6), "best": best}


def predict_spans(
    questions: Sequence[QAExample], windows: PassageWindows, scores_T2: Floats, max_answer_tokens: int, threshold: float
) -> Iterator[QAPrediction]:
    """The prediction for each question. `scores_T2` holds the logits of all rows, flat."""
    rows = offsets(windows.first_token + windows.count + 1)
    bounds = np.searchsorted(windows.question, np.arange(len(questions) + 1)).tolist()
    for question, passage, first, end in zip(questions, windows.passages, bounds, bounds[1:], strict=False):
        begin = rows[first:end] + windows.first_token[first:end]
        ends = begin + windows.count[first:end]
        scores = [scores_T2[a:b].astype(np.float64) for a, b in zip(begin, ends, strict=True)]
        null_score = float(scores_T2[rows[first:end]].sum(axis=1).min())
        found = best_spans(scores, windows.begin[first:end], max_answer_tokens)
        yield QAPrediction(question.id, _distinct_texts(question.passage, passage, found), null_score, threshold)


def _distinct_texts(text: str, passage: EncodedText, found: Iterable[ScoredSpan]) -> tuple[SpanCandidate, ...]:
    """The best spans that differ in their text."""
    kept: dict[str, SpanCandidate] = {}
    for span in found:
        start, piece = piece_between(text, passage, span.first, span.last)
        if piece and len(kept) < NUM_BEST:
            kept.setdefault(piece, SpanCandidate(piece, start, span.score))
    return tuple(kept.values())


def to_submission(answers: Iterable[QAPrediction]) -> dict[str, str]:
    """The prediction of each question by its id, as the SQuAD and CMRC scripts read it."""
    return {answer.id: answer.prediction for answer in answers}


def no_answer_probabilities(answers: Iterable[QAPrediction]) -> dict[str, float]:
    """The no-answer probability of each question, one half at the threshold: the second file of SQuAD 2.0."""
    return {answer.id: _logistic(answer.no_answer_score - answer.threshold) for answer in answers}


def save_submission(folder: Path, answers: Sequence[QAPrediction]) -> None:
    """Write both files, the second only where no answer is possible."""
    write_text(folder / SUBMISSION_FILE, json.dumps(to_submission(answers), ensure_ascii=False, indent=1) + "\n")
    if all(math.isfinite(answer.threshold) for answer in answers):
        write_text(folder / NO_ANSWER_FILE, json.dumps(no_answer_probabilities(answers), indent=1) + "\n")


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))
