"""One class out of some, for a text or a pair of texts.

What arrives: labels as written. What leaves: `Classify`, which knows them by number.
What never happens here: a class that training has never seen. Such a row is refused with its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.nets.reading import ReadOut
from unmask.records import Ints
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, RowFacts
from unmask.tune.judge import Judge
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.rows import RowQuestion
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class ClassAnswer:
    """The likeliest class of a row, and how likely each class is."""

    said: str
    probabilities: tuple[float, ...]

    def line(self) -> dict[str, object]:
        """The class, and how sure the network is of it."""
        return {"said": self.said, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class Classify:
    """A class for each row."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "judge"
    read: ReadOut = ReadOut.FIRST
    kind: ClassVar[Kind] = Kind.CLASSIFY

    @staticmethod
    def learn(sheet: Sheet[RowQuestion], wish: Wish = NO_WISH) -> Classify:
        """The classes of a training file."""
        labels = in_order({question.truth for question in sheet.questions})
        if len(labels) < 2:
            raise InputError(
                f"{sheet.name}: all {len(sheet):,} rows have the label {labels[0]!r}. A choice needs at least two "
                "classes."
            )
        return Classify(labels, read=wish.read)

    @property
    def objective(self) -> Judge:
        """What a network learns to say."""
        return Judge(len(self.labels), self.name, read=self.read)

    def told(self, sheet: Sheet[RowQuestion]) -> Iterator[str]:
        """The classes and how often each occurs."""
        yield f"{len(self.labels)} classes: {shared_out([question.truth for question in sheet.questions])}"

    def check(self, sheet: Sheet[RowQuestion]) -> None:
        """Refuse a label that is not one of the classes."""
        for question, where in zip(sheet.questions, sheet.where, strict=True):
            if question.truth and question.truth not in self.labels:
                raise InputError(
                    f"{where}: the label {question.truth!r} does not occur in the training file, which has "
                    f"{some_of(self.labels)}. Correct the line, or add rows with this label to the training file."
                )

    def numbers(self, sheet: Sheet[RowQuestion]) -> Ints:
        """The number of each row's class."""
        return self.numbers_of([question.truth for question in sheet.questions])

    def numbers_of(self, labels: Sequence[str]) -> Ints:
        """The number of each label."""
        number = {label: place for place, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels], dtype=np.int64)

    def lay_out(self, sheet: Sheet[RowQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each question."""
        rows = encode([question.texts for question in sheet.questions], tokenizer, room, sheet.where, tick)
        if not all(question.truth for question in sheet.questions):
            return Exercise(rows)
        return Exercise(rows, RowFacts(self.name, self.numbers(sheet)))

    def answer(self, learner: Learner, sheet: Sheet[RowQuestion], exercise: Exercise) -> Sequence[ClassAnswer]:
        """The likeliest class of each row."""
        from unmask.tune.say import row_scores, shares

        found = shares(row_scores(learner, self.name, exercise))
        return [ClassAnswer(self.labels[int(row.argmax())], tuple(row.tolist())) for row in found]


def in_order(labels: set[str]) -> tuple[str, ...]:
    """Whole numbers by size, words by their letters."""
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def shared_out(truths: Sequence[str], most: int = 6) -> str:
    """How rows spread over classes, for a person to read."""
    counts = Counter(truths)
    kept = in_order(set(truths))[:most]
    rest = f", and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(f"{label} ({counts[label] / len(truths):.0%})" for label in kept) + rest


def some_of(labels: Sequence[str], most: int = 8) -> str:
    """Some labels in words."""
    return ", ".join(labels[:most]) + (f" and {len(labels) - most} more" if len(labels) > most else "")
