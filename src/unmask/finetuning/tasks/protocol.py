"""What is asked about the rows of a task file: the protocol that every kind of task implements.

What arrives: questions with their truths. What leaves: an exercise for a course, and answers in the words of the file.
What never happens here: knowing how the network is trained. That is a policy's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import AnyExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel

Ticker: TypeAlias = Callable[[int], None]
"""Hears how many questions are done."""


def ignore_progress(done: int) -> None:
    """Nobody listens."""


class TaskType(StrEnum):
    """What is said about a question."""

    CLASSIFICATION = "classification"
    """One class out of some."""
    SAN_PAIR = "san-pair"
    """One class out of some, for two texts that are compared word by word."""
    MULTILABEL = "multilabel"
    """Several labels, one or none."""
    REGRESSION = "regression"
    """A number."""
    TAGGING = "tagging"
    """A class for each word."""
    SPAN_QA = "span-qa"
    """A piece of the text, or none."""
    MULTIPLE_CHOICE = "multiple-choice"
    """One of several given answers."""
    RANKING = "ranking"
    """An order of candidates."""
    GENERATION = "generation"
    """A new text."""


def default_max_length(task_type: TaskType) -> int:
    """The longest row, unless something else is said: passages that are asked about are long."""
    return 384 if task_type is TaskType.SPAN_QA else 128


class Prediction(Protocol):
    """What a tuned network says to one question."""

    def to_json(self) -> Mapping[str, object]:
        """The answer as a line of `predictions.jsonl`, beside the question and its truth."""


class TaskDefinition(Protocol):
    """What is asked, with everything that the training file decided (labels, scale): a frozen value, kept as JSON."""

    task_type: ClassVar[TaskType]

    @property
    def objective(self) -> Objective:
        """What a network learns to say."""

    def notes(self, sheet: AnyExampleSet) -> Iterator[str]:
        """What is asked, in sentences."""

    def check(self, sheet: AnyExampleSet) -> None:
        """Refuse a question whose truth training has never seen, with its line."""

    def encode(
        self, sheet: AnyExampleSet, tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """All questions as rows of tokens, with their truths if the sheet tells them."""

    def predict(self, learner: MultiHeadModel, sheet: AnyExampleSet, dataset: EncodedDataset) -> Sequence[Prediction]:
        """What a network at rest says to each question, in the order of the sheet."""
