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

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowClasses
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.row_tasks import Classification

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class ClassPrediction:
    """The likeliest class of a row, and how likely each class is."""

    prediction: str
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The class, and how sure the network is of it."""
        return {"prediction": self.prediction, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """A class for each row."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "judge"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.CLASSIFICATION

    @staticmethod
    def from_examples(
        sheet: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> ClassificationTask:
        """The classes of a training file."""
        labels = sort_labels({question.truth for question in sheet.examples})
        if len(labels) < 2:
            raise InputError(
                f"{sheet.name}: all {len(sheet):,} rows have the label {labels[0]!r}. A choice needs at least two "
                "classes."
            )
        return ClassificationTask(labels, pooling=options.pooling)

    @property
    def objective(self) -> Classification:
        """What a network learns to say."""
        return Classification(len(self.labels), self.name, pooling=self.pooling)

    def notes(self, sheet: ExampleSet[TextExample]) -> Iterator[str]:
        """The classes and how often each occurs."""
        yield f"{len(self.labels)} classes: {describe_distribution([question.truth for question in sheet.examples])}"

    def check(self, sheet: ExampleSet[TextExample]) -> None:
        """Refuse a label that is not one of the classes."""
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            if question.truth and question.truth not in self.labels:
                raise InputError(
                    f"{where}: the label {question.truth!r} does not occur in the training file, which has "
                    f"{list_labels(self.labels)}. Correct the line, or add rows with this label to the training file."
                )

    def class_indices(self, sheet: ExampleSet[TextExample]) -> Ints:
        """The number of each row's class."""
        return self.indices_of([question.truth for question in sheet.examples])

    def indices_of(self, labels: Sequence[str]) -> Ints:
        """The number of each label."""
        number = {label: place for place, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels], dtype=np.int64)

    def encode(
        self, sheet: ExampleSet[TextExample], tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """One row of tokens for each question."""
        rows = encode_texts(
            [question.texts for question in sheet.examples], tokenizer, limits, sheet.source_lines, tick
        )
        if not all(question.truth for question in sheet.examples):
            return EncodedDataset(rows)
        return EncodedDataset(rows, RowClasses(self.name, self.class_indices(sheet)))

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[ClassPrediction]:
        """The likeliest class of each row."""
        from unmask.finetuning.logits import row_logits, softmax

        found = softmax(row_logits(learner, self.name, dataset))
        return [ClassPrediction(self.labels[int(row.argmax())], tuple(row.tolist())) for row in found]


def sort_labels(labels: set[str]) -> tuple[str, ...]:
    """Whole numbers by size, words by their letters."""
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def describe_distribution(truths: Sequence[str], max_shown: int = 6) -> str:
    """How rows spread over classes, for a person to read."""
    counts = Counter(truths)
    kept = sort_labels(set(truths))[:max_shown]
    rest = f", and {len(counts) - max_shown} more" if len(counts) > max_shown else ""
    return ", ".join(f"{label} ({counts[label] / len(truths):.0%})" for label in kept) + rest


def list_labels(labels: Sequence[str], max_shown: int = 8) -> str:
    """Some labels in words."""
    return ", ".join(labels[:max_shown]) + (f" and {len(labels) - max_shown} more" if len(labels) > max_shown else "")
