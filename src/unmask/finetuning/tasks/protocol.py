"""The protocol of task types: encode examples, define the objective, and turn logits into predictions.

A task knows nothing about the fine-tuning method, and a method nothing about the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import AnyExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


class TaskType(StrEnum):
    """What is predicted for an example."""

    CLASSIFICATION = "classification"
    """One class of a text or a pair."""
    SAN_PAIR = "san-pair"
    """One class of a pair of texts, by the answer module of SAN."""
    MULTILABEL = "multilabel"
    """Several labels, one or none."""
    REGRESSION = "regression"
    """A number."""
    TAGGING = "tagging"
    """A class for each word."""
    SPAN_QA = "span-qa"
    """A span of a passage, or no answer."""
    MULTIPLE_CHOICE = "multiple-choice"
    """One of several given choices."""
    RANKING = "ranking"
    """An order of candidates."""
    GENERATION = "generation"
    """A new text."""


def default_max_length(task_type: TaskType) -> int:
    """The default row length: passages need longer rows."""
    return 384 if task_type is TaskType.SPAN_QA else 128


class Prediction(Protocol):
    """The prediction for one example."""

    def to_json(self) -> Mapping[str, object]:
        """The fields that a line of `predictions.jsonl` gets in addition to those of the example."""


class TaskDefinition(Protocol):
    """A task with everything that the training file decides (labels, scale): a frozen value, saved as JSON."""

    task_type: ClassVar[TaskType]

    @property
    def objective(self) -> Objective:
        """The training objective."""

    def notes(self, examples: AnyExampleSet) -> Iterator[str]:
        """Sentences about the task for the user."""

    def check(self, examples: AnyExampleSet) -> None:
        """Refuse a example whose truth training has never seen, with its line."""

    def encode(
        self, examples: AnyExampleSet, tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """All examples as rows of tokens, with targets if all labels are known."""

    def predict(self, model: MultiHeadModel, examples: AnyExampleSet, dataset: EncodedDataset) -> Sequence[Prediction]:
        """The prediction for each example, in order; the model is in eval mode."""
