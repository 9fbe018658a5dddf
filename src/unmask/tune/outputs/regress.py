"""A number about a text or a pair of texts.

What arrives: numbers as written. What leaves: `Regress`, which learns them on a scale of its own.
What never happens here: a scale that is harder to learn than another. Numbers are learned as distances from their mean
in units of their standard deviation, and said in the units of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.nets.reading import ReadOut
from unmask.records import Amounts
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, RowAmounts
from unmask.tune.judge import Rate
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.rows import RowQuestion
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class NumberAnswer:
    """The number that is said about a row."""

    said: float

    def line(self) -> dict[str, object]:
        """The number."""
        return {"said": round(self.said, 6)}


@dataclass(frozen=True, slots=True)
class Regress:
    """A number for each row."""

    mean: float = 0.0
    spread: float = 1.0
    """The standard deviation of the numbers of the training file."""
    name: str = "rate"
    read: ReadOut = ReadOut.FIRST
    kind: ClassVar[Kind] = Kind.REGRESS

    @staticmethod
    def learn(sheet: Sheet[RowQuestion], wish: Wish = NO_WISH) -> Regress:
        """The scale of a training file."""
        numbers = amounts(sheet)
        spread = float(numbers.std())
        if not spread:
            raise InputError(
                f"{sheet.name}: all {len(sheet):,} rows have the score {sheet.questions[0].truth}; nothing can be "
                "learned."
            )
        return Regress(float(numbers.mean()), spread, read=wish.read)

    @property
    def objective(self) -> Rate:
        """What a network learns to say."""
        return Rate(self.name, read=self.read)

    def told(self, sheet: Sheet[RowQuestion]) -> Iterator[str]:
        """Where the numbers lie."""
        yield f"a number is asked for, {self.mean:.3g} on average, give or take {self.spread:.3g}"

    def check(self, sheet: Sheet[RowQuestion]) -> None:
        """Refuse what is no number."""
        for question, where in zip(sheet.questions, sheet.where, strict=True):
            if question.truth:
                _number(question.truth, where)

    def lay_out(self, sheet: Sheet[RowQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each question."""
        rows = encode([question.texts for question in sheet.questions], tokenizer, room, sheet.where, tick)
        if not all(question.truth for question in sheet.questions):
            return Exercise(rows)
        return Exercise(rows, RowAmounts(self.name, (amounts(sheet) - self.mean) / self.spread))

    def answer(self, learner: Learner, sheet: Sheet[RowQuestion], exercise: Exercise) -> Sequence[NumberAnswer]:
        """The number of each row, in the units of the file."""
        from unmask.tune.say import row_scores

        said = row_scores(learner, self.name, exercise)[:, 0].astype(np.float64) * self.spread + self.mean
        return [NumberAnswer(number) for number in said.tolist()]


def amounts(sheet: Sheet[RowQuestion]) -> Amounts:
    """The truths of a sheet as numbers."""
    pairs = zip(sheet.questions, sheet.where, strict=True)
    return np.array([_number(question.truth, where) for question, where in pairs], dtype=np.float64)


def _number(truth: str, where: str) -> float:
    try:
        number = float(truth)
    except ValueError:
        raise InputError(
            f"{where}: the score {truth!r} is no number. Correct the line, or use --kind classify."
        ) from None
    if not math.isfinite(number):
        raise InputError(f"{where}: the score {truth!r} is not a finite number. Correct the line, or remove it.")
    return number
