"""One of several given answers: multiple choice.

What arrives: questions with their choices. What leaves: `Choose`, which reads each choice in a row of its own.
What never happens here: choices that are read together. Each is scored alone, and a softmax compares the scores.

A row is `[CLS] context [SEP] question choice [SEP]`, as BERT was tuned on SWAG (Devlin et al., 2018, 4.4); without a
context `[CLS] question [SEP] choice [SEP]`. A row that is too long loses the end of its longer part, so mostly of the
context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.nets.reading import ReadOut
from unmask.ragged import offsets
from unmask.records import Ints
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.choice_rows import ChoiceQuestion
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, GroupValues
from unmask.tune.judge import Pick
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """The likeliest choice, and how likely each choice is, in the order of the question."""

    said: str
    probabilities: tuple[float, ...]

    def line(self) -> dict[str, object]:
        """The choice, and how sure the network is of it."""
        return {"said": self.said, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class Choose:
    """One choice for each question."""

    name: str = "choose"
    read: ReadOut = ReadOut.FIRST
    kind: ClassVar[Kind] = Kind.CHOOSE

    @staticmethod
    def learn(sheet: Sheet[ChoiceQuestion], wish: Wish = NO_WISH) -> Choose:
        """Nothing depends on the file: choices have no numbers of their own."""
        return Choose(read=wish.read)

    @property
    def objective(self) -> Pick:
        """What a network learns to say."""
        return Pick(self.name, read=self.read)

    def told(self, sheet: Sheet[ChoiceQuestion]) -> Iterator[str]:
        """How many choices there are."""
        counts = choice_counts(sheet)
        many = f"{counts.min()} to {counts.max()}" if np.ptp(counts) else str(counts[0])
        yield f"{many} choices a question; guessing would be right in {float(np.mean(1 / counts)):.0%}"

    def check(self, sheet: Sheet[ChoiceQuestion]) -> None:
        """Whatever could be read can be asked."""

    def lay_out(
        self, sheet: Sheet[ChoiceQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent
    ) -> Exercise:
        """One row of tokens for each choice; an item is a question with all its choices."""
        counts = choice_counts(sheet)
        items = offsets(counts)
        texts = [row for question in sheet.questions for row in rows_of(question)]
        where = np.repeat(np.array(sheet.where, dtype=object), counts).tolist()
        rows = encode(texts, tokenizer, room, where, lambda done: tick(int(np.searchsorted(items, done, "right")) - 1))
        if not all(question.truth for question in sheet.questions):
            return Exercise(rows, items=items)
        value = np.zeros(len(texts))
        value[items[:-1] + right_places([question.truth for question in sheet.questions], sheet)] = 1.0
        return Exercise(rows, GroupValues(self.name, value), items)

    def answer(self, learner: Learner, sheet: Sheet[ChoiceQuestion], exercise: Exercise) -> Sequence[ChoiceAnswer]:
        """The likeliest choice of each question."""
        from unmask.tune.say import row_scores, shares

        scores_N = row_scores(learner, self.name, exercise)[:, 0]
        found = [shares(scores_N[first:end]) for first, end in pairwise(exercise.begin.tolist())]
        return [
            ChoiceAnswer(question.choices[int(likely.argmax())], tuple(likely.tolist()))
            for question, likely in zip(sheet.questions, found, strict=True)
        ]


def choice_counts(sheet: Sheet[ChoiceQuestion]) -> Ints:
    """How many choices each question has."""
    return np.array([len(question.choices) for question in sheet.questions], dtype=np.int64)


def right_places(truths: Sequence[str], sheet: Sheet[ChoiceQuestion]) -> Ints:
    """Where each of some texts stands among the choices of its question."""
    pairs = zip(truths, sheet.questions, strict=True)
    return np.array([question.choices.index(truth) for truth, question in pairs], dtype=np.int64)


def rows_of(question: ChoiceQuestion) -> Iterator[tuple[str, str]]:
    """The two parts of the row of each choice: the context, then the question with the choice."""
    for one in question.choices:
        yield question.given[0], " ".join((*question.given[1:], one))
