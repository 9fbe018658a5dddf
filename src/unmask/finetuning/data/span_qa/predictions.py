"""Answers that are pieces of a passage, and the files that SQuAD and CMRC want.

What arrives: questions with the scores of all their tokens. What leaves: a `SpanAnswer` for each question.
What never happens here: text that was put together from tokens. An answer is cut out of the original passage by
characters, so nothing that a tokenizer does can change it.
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
"""How many different answers a question keeps, and how many of them a line of predictions shows."""
SUBMISSION_FILE, NO_ANSWER_FILE = "submission.json", "na_prob.json"


@dataclass(frozen=True, slots=True)
class SpanCandidate:
    """A piece of the passage, the character with which it begins, and its score."""

    text: str
    start: int
    score: float


@dataclass(frozen=True, slots=True)
class QAPrediction:
    """The best pieces of a passage for a question, and how much speaks for no answer at all."""

    id: str
    best: tuple[SpanCandidate, ...]
    """All with different texts, best first; none only where the passage has no tokens."""
    null_score: float
    """The score of no answer: that of [CLS] as both ends, in the window where it is lowest."""
    threshold: float = math.inf
    """Nothing is said where the doubt is greater; infinite where there always is an answer."""

    @property
    def text(self) -> str:
        """The best piece, even where nothing is said."""
        return self.best[0].text if self.best else ""

    @property
    def no_answer_score(self) -> float:
        """The score of no answer, less that of the best piece."""
        return self.null_score - self.best[0].score if self.best else self.null_score

    @property
    def prediction(self) -> str:
        """The best piece, or nothing."""
        return "" if self.no_answer_score > self.threshold else self.text

    def probabilities(self) -> tuple[float, ...]:
        """How likely each candidate is among all; where there may be no answer, that comes last."""
        silent = [self.null_score] if math.isfinite(self.threshold) or not self.best else []
        rivals = [one.score for one in self.best] + silent
        weights = [math.exp(score - max(rivals)) for score in rivals]
        return tuple(weight / sum(weights) for weight in weights)

    def to_json(self) -> dict[str, object]:
        """What is said and where it stands, how likely it is, and the best candidates."""
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
    """The answer to each question. `scores_T2` are those of all rows, flat; `longest` counts tokens."""
    rows = offsets(windows.first_token + windows.count + 1)
    bounds = np.searchsorted(windows.question, np.arange(len(questions) + 1)).tolist()
    for question, passage, first, end in zip(questions, windows.passages, bounds, bounds[1:], strict=False):
        begin = rows[first:end] + windows.first_token[first:end]
        ends = begin + windows.count[first:end]
        scores = [scores_T2[a:b].astype(np.float64) for a, b in zip(begin, ends, strict=True)]
        nothing = float(scores_T2[rows[first:end]].sum(axis=1).min())
        found = best_spans(scores, windows.begin[first:end], max_answer_tokens)
        yield QAPrediction(question.id, _distinct_texts(question.passage, passage, found), nothing, threshold)


def _distinct_texts(text: str, passage: EncodedText, found: Iterable[ScoredSpan]) -> tuple[SpanCandidate, ...]:
    """The best spans that differ in their text."""
    kept: dict[str, SpanCandidate] = {}
    for span in found:
        start, piece = piece_between(text, passage, span.first, span.last)
        if piece and len(kept) < NUM_BEST:
            kept.setdefault(piece, SpanCandidate(piece, start, span.score))
    return tuple(kept.values())


def to_submission(answers: Iterable[QAPrediction]) -> dict[str, str]:
    """What is said to each question, by its id: what the scripts of SQuAD and CMRC read."""
    return {answer.id: answer.prediction for answer in answers}


def no_answer_probabilities(answers: Iterable[QAPrediction]) -> dict[str, float]:
    """How likely each question has no answer, one half at the threshold: the second file that SQuAD 2.0 wants."""
    return {answer.id: _logistic(answer.no_answer_score - answer.threshold) for answer in answers}


def save_submission(folder: Path, answers: Sequence[QAPrediction]) -> None:
    """Write both, the second only where there may be no answer."""
    write_text(folder / SUBMISSION_FILE, json.dumps(to_submission(answers), ensure_ascii=False, indent=1) + "\n")
    if all(math.isfinite(answer.threshold) for answer in answers):
        write_text(folder / NO_ANSWER_FILE, json.dumps(no_answer_probabilities(answers), indent=1) + "\n")


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))
