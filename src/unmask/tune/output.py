"""What is asked about the rows of a task file: the protocol that every kind of task implements.

What arrives: questions with their truths. What leaves: an exercise for a course, and answers in the words of the file.
What never happens here: knowing how the network is trained. That is a policy's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from unmask.objectives.part import Learnable
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.sheet import AnySheet

if TYPE_CHECKING:
    from unmask.train.learner import Learner

Ticker: TypeAlias = Callable[[int], None]
"""Hears how many questions are done."""


def silent(done: int) -> None:
    """Nobody listens."""


class Kind(StrEnum):
    """What is said about a question."""

    CLASSIFY = "classify"
    """One class out of some."""
    PAIR = "pair"
    """One class out of some, for two texts that are compared word by word."""
    LABELS = "labels"
    """Several labels, one or none."""
    REGRESS = "regress"
    """A number."""
    TAG = "tag"
    """A class for each word."""
    SPAN = "span"
    """A piece of the text, or none."""
    CHOOSE = "choose"
    """One of several given answers."""
    RANK = "rank"
    """An order of candidates."""
    WRITE = "write"
    """A new text."""


def usual_length(kind: Kind) -> int:
    """The longest row, unless something else is said: passages that are asked about are long."""
    return 384 if kind is Kind.SPAN else 128


class Answer(Protocol):
    """What a tuned network says to one question."""

    def line(self) -> Mapping[str, object]:
        """The answer as a line of `predictions.jsonl`, beside the question and its truth."""


class Output(Protocol):
    """What is asked, with everything that the training file decided (labels, scale): a frozen value, kept as JSON."""

    kind: ClassVar[Kind]

    @property
    def objective(self) -> Learnable:
        """What a network learns to say."""

    def told(self, sheet: AnySheet) -> Iterator[str]:
        """What is asked, in sentences."""

    def check(self, sheet: AnySheet) -> None:
        """Refuse a question whose truth training has never seen, with its line."""

    def lay_out(self, sheet: AnySheet, tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """All questions as rows of tokens, with their truths if the sheet tells them."""

    def answer(self, learner: Learner, sheet: AnySheet, exercise: Exercise) -> Sequence[Answer]:
        """What a network at rest says to each question, in the order of the sheet."""
