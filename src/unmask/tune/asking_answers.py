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

from unmask.ragged import offsets
from unmask.records import Floats
from unmask.shards.files import write_text
from unmask.tokenize.chunks import Tokens
from unmask.tune.asking import PassageQuestion
from unmask.tune.asking_best import Scored, best_spans
from unmask.tune.asking_windows import Windows, piece_between

BEST, SHOWN = 20, 3
"""How many different answers a question keeps, and how many of them a line of predictions shows."""
SUBMISSION, SILENCE = "submission.json", "na_prob.json"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of the passage, the character with which it begins, and its score."""

    text: str
    start: int
    score: float


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """The best pieces of a passage for a question, and how much speaks for no answer at all."""

    id: str
    best: tuple[Candidate, ...]
    """All with different texts, best first; none only where the passage has no tokens."""
    nothing: float
    """The score of no answer: that of [CLS] as both ends, in the window where it is lowest."""
    threshold: float = math.inf
    """Nothing is said where the doubt is greater; infinite where there always is an answer."""

    @property
    def meant(self) -> str:
        """The best piece, even where nothing is said."""
        return self.best[0].text if self.best else ""

    @property
    def doubt(self) -> float:
        """The score of no answer, less that of the best piece."""
        return self.nothing - self.best[0].score if self.best else self.nothing

    @property
    def said(self) -> str:
        """The best piece, or nothing."""
        return "" if self.doubt > self.threshold else self.meant

    def probabilities(self) -> tuple[float, ...]:
        """How likely each candidate is among all; where there may be no answer, that comes last."""
        silent = [self.nothing] if math.isfinite(self.threshold) or not self.best else []
        rivals = [one.score for one in self.best] + silent
        weights = [math.exp(score - max(rivals)) for score in rivals]
        return tuple(weight / sum(weights) for weight in weights)

    def line(self) -> dict[str, object]:
        """What is said and where it stands, how likely it is, and the best candidates."""
        likely = [round(share, 6) for share in self.probabilities()]
        shown = list(zip(self.best, likely, strict=False))[:SHOWN]
        best = [{"text": one.text, "start": one.start, "probability": share} for one, share in shown]
        chosen = {"start": self.best[0].start, "probability": likely[0]} if self.said else {"probability": likely[-1]}
        return {"said": self.said, **chosen, "no_answer": round(self.doubt, 6), "best": best}


def answers_from(
    questions: Sequence[PassageQuestion], windows: Windows, scores_T2: Floats, longest: int, threshold: float
) -> Iterator[SpanAnswer]:
    """The answer to each question. `scores_T2` are those of all rows, flat; `longest` counts tokens."""
    rows = offsets(windows.place + windows.count + 1)
    bounds = np.searchsorted(windows.question, np.arange(len(questions) + 1)).tolist()
    for question, passage, first, end in zip(questions, windows.passages, bounds, bounds[1:], strict=False):
        begin = rows[first:end] + windows.place[first:end]
        ends = begin + windows.count[first:end]
        scores = [scores_T2[a:b].astype(np.float64) for a, b in zip(begin, ends, strict=True)]
        nothing = float(scores_T2[rows[first:end]].sum(axis=1).min())
        found = best_spans(scores, windows.begin[first:end], longest)
        yield SpanAnswer(question.id, _different(question.passage, passage, found), nothing, threshold)


def _different(text: str, passage: Tokens, found: Iterable[Scored]) -> tuple[Candidate, ...]:
    """The best spans that differ in their text."""
    kept: dict[str, Candidate] = {}
    for span in found:
        start, piece = piece_between(text, passage, span.first, span.last)
        if piece and len(kept) < BEST:
            kept.setdefault(piece, Candidate(piece, start, span.score))
    return tuple(kept.values())


def submission(answers: Iterable[SpanAnswer]) -> dict[str, str]:
    """What is said to each question, by its id: what the scripts of SQuAD and CMRC read."""
    return {answer.id: answer.said for answer in answers}


def silence(answers: Iterable[SpanAnswer]) -> dict[str, float]:
    """How likely each question has no answer, one half at the threshold: the second file that SQuAD 2.0 wants."""
    return {answer.id: _logistic(answer.doubt - answer.threshold) for answer in answers}


def save_submission(folder: Path, answers: Sequence[SpanAnswer]) -> None:
    """Write both, the second only where there may be no answer."""
    write_text(folder / SUBMISSION, json.dumps(submission(answers), ensure_ascii=False, indent=1) + "\n")
    if all(math.isfinite(answer.threshold) for answer in answers):
        write_text(folder / SILENCE, json.dumps(silence(answers), indent=1) + "\n")


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))
