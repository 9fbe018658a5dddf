"""Text classification: one class for a text or a pair of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Ints, RowClass
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, encode_examples, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.row_tasks import Classification

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class ClassPrediction:
    """The most probable class, and the probability of each class."""

    prediction: str
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The class and its probability."""
        return {"prediction": self.prediction, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """A class for each row."""

    labels: tuple[str, ...]
    """In the order of their indices."""
    name: str = "judge"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.CLASSIFICATION

    @staticmethod
    def from_examples(
        examples: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> ClassificationTask:
        """The classes of a training file."""
        labels = sort_labels({example.truth for example in examples.examples})
        if len(labels) < 2:
            raise InputError(
                f"{examples.name}: all {len(examples):,} rows have the label {labels[0]!r}. Classification needs at "
                "least two classes."
            )
        return ClassificationTask(labels, pooling=options.pooling)

    @property
    def objective(self) -> Classification:
        """The training objective."""
        return Classification(len(self.labels), self.name, pooling=self.pooling)

    def notes(self, examples: ExampleSet[TextExample]) -> Iterator[str]:
        """The classes and their frequencies."""
        yield f"{len(self.labels)} classes: {describe_distribution([example.truth for example in examples.examples])}"

    def check(self, examples: ExampleSet[TextExample]) -> None:
        """Refuse a label that is no class of the training file."""
        for example, where in zip(examples.examples, examples.source_lines, strict=True):
            if example.truth and example.truth not in self.labels:
                raise InputError(
                    f"{where}: the label {example.truth!r} does not occur in the training file, which has "
                    f"{list_labels(self.labels)}. Correct the line, or add rows with this label to the training file."
                )

    def class_indices(self, examples: ExampleSet[TextExample]) -> Ints:
        """The class index of each example."""
        return self.indices_of([example.truth for example in examples.examples])

    def indices_of(self, labels: Sequence[str]) -> Ints:
        """The index of each label."""
        number = {label: place for place, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels], dtype=np.int64)

    def encode(
        self,
        examples: ExampleSet[TextExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each example."""
        rows = encode_examples(examples, tokenizer, limits, tick)
        if not all(example.truth for example in examples.examples):
            return EncodedDataset(rows)
        return EncodedDataset(rows, RowTargets(RowClass(self.name, self.class_indices(examples))))

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[ClassPrediction]:
        """The most probable class of each example."""
        from unmask.finetuning.logits import row_logits, softmax

        found = softmax(row_logits(model, self.name, dataset))
        return [ClassPrediction(self.labels[int(row.argmax())], tuple(row.tolist())) for row in found]


def sort_labels(labels: set[str]) -> tuple[str, ...]:
    """Labels in order: whole numbers by size, words alphabetically."""
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def describe_distribution(truths: Sequence[str], max_shown: int = 6) -> str:
    """The distribution of classes as text."""
    counts = Counter(truths)
    kept = sort_labels(set(truths))[:max_shown]
    rest = f", and {len(counts) - max_shown} more" if len(counts) > max_shown else ""
    return ", ".join(f"{label} ({counts[label] / len(truths):.0%})" for label in kept) + rest


def list_labels(labels: Sequence[str], max_shown: int = 8) -> str:
    """The first labels as text."""
    return ", ".join(labels[:max_shown]) + (f" and {len(labels) - max_shown} more" if len(labels) > max_shown else "")
