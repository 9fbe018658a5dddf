"""A piece of the passage as the answer to a question, or no answer.

What arrives: questions with their passages. What leaves: `Span`, which knows how long answers are and when to be
silent.
What never happens here: an answer that does not stand in its passage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune import asking_windows
from unmask.tune.asking import PassageQuestion, units
from unmask.tune.asking_answers import SpanAnswer, answers_from
from unmask.tune.asking_windows import Windows
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.pointing import Point
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner

LONGEST = 30
"""The most tokens of an answer, unless the answers of the training file are longer."""
_HELD = 99
"""So many answers in a hundred of the training file must be short enough to be said."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of each passage, of at most `longest` tokens."""

    longest: int = LONGEST
    may_be_silent: bool = False
    """Whether the training file has questions without an answer; else something is always said."""
    threshold: float = 0.0
    """Nothing is said where the score of no answer is higher than that of the best piece by more than this."""
    name: str = "span"
    kind: ClassVar[Kind] = Kind.SPAN
    usual_length: ClassVar[int] = 384

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise InputError(f"An answer has at least one token, found a limit of {self.longest}.")

    @staticmethod
    def learn(sheet: Sheet[PassageQuestion], wish: Wish = NO_WISH) -> Span:
        """How long answers are, and whether some questions have none."""
        answers = [question.answers[0].text for question in sheet.questions if question.answers]
        if not answers:
            raise InputError(f"{sheet.name}: no question has an answer, so nothing can be learned.")
        usual = max(LONGEST, math.ceil(float(np.percentile([units(text) for text in answers], _HELD))))
        return Span(usual if wish.longest is None else wish.longest, len(answers) < len(sheet))

    @property
    def objective(self) -> Point:
        """What a network learns to say."""
        return Point(self.name)

    def told(self, sheet: Sheet[PassageQuestion]) -> Iterator[str]:
        """How long an answer may be, and how many questions have none."""
        yield f"a piece of the passage is asked for, of at most {self.longest} tokens"
        none = sum(question.impossible for question in sheet.questions)
        if none:
            yield f"{none:,} of the questions ({none / len(sheet):.0%}) have no answer"

    def check(self, sheet: Sheet[PassageQuestion]) -> None:
        """Refuse a question without an answer if training has seen none."""
        for question, where in zip(sheet.questions, sheet.where, strict=True):
            if question.impossible and not self.may_be_silent:
                raise InputError(
                    f"{where}: the question has no answer, but every question of the training file has one. Remove "
                    "the question, or train with questions that have no answer."
                )

    def lay_out(
        self, sheet: Sheet[PassageQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent
    ) -> Exercise:
        """One row of tokens for each window of each question's passage."""
        return asking_windows.lay_out(sheet, self.name, tokenizer, room, tick)

    def answer(self, learner: Learner, sheet: Sheet[PassageQuestion], exercise: Exercise) -> Sequence[SpanAnswer]:
        """The best piece of each passage over all its windows, or nothing."""
        from unmask.tune.say import token_scores

        assert isinstance(exercise.truth, Windows), "the exercise was laid out by this kind of output"
        scores_T2 = token_scores(learner, self.name, exercise)
        border = self.threshold if self.may_be_silent else math.inf
        return tuple(answers_from(sheet.questions, exercise.truth, scores_T2, self.longest, border))

    def fitted(self, threshold: float) -> Span:
        """The same output with another threshold, which serves a set of questions best."""
        return replace(self, threshold=threshold)

    def reconsidered(self, answers: Sequence[SpanAnswer]) -> Sequence[SpanAnswer]:
        """Answers that were given under another threshold, as they are under this one."""
        return tuple(replace(answer, threshold=self.threshold) for answer in answers)
