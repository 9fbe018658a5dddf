"""Regression: a number for a text or a pair of texts.

Numbers are standardized for training with mean and standard deviation of the training file, and predicted in its units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Doubles, RowValue
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, encode_examples, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.row_tasks import Regression

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class NumberPrediction:
    """The predicted number."""

    prediction: float

    def to_json(self) -> dict[str, object]:
        """The number."""
        return {"prediction": round(self.prediction, 6)}


@dataclass(frozen=True, slots=True)
class RegressionTask:
    """A number for each row."""

    mean: float = 0.0
    std: float = 1.0
    """The standard deviation of the numbers of the training file."""
    name: str = "rate"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.REGRESSION

    @staticmethod
    def from_examples(examples: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> RegressionTask:
        """The scale of a training file."""
        numbers = target_numbers(examples)
        spread = float(numbers.std())
        if not spread:
            raise InputError(
                f"{examples.name}: all {len(examples):,} rows have the score {examples.examples[0].truth}; nothing can "
                "be learned."
            )
        return RegressionTask(float(numbers.mean()), spread, pooling=options.pooling)

    @property
    def objective(self) -> Regression:
        """The training objective."""
        return Regression(self.name, pooling=self.pooling)

    def notes(self, examples: ExampleSet[TextExample]) -> Iterator[str]:
        """Mean and standard deviation of the numbers."""
        yield f"regression: mean {self.mean:.3g}, standard deviation {self.std:.3g}"

    def check(self, examples: ExampleSet[TextExample]) -> None:
        """Refuse a label that is no number."""
        for example, where in zip(examples.examples, examples.source_lines, strict=True):
            if example.truth:
                _number(example.truth, where)

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
        values = (target_numbers(examples) - self.mean) / self.std
        return EncodedDataset(rows, RowTargets(RowValue(self.name, values)))

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[NumberPrediction]:
        """The number of each row, in the units of the file."""
        from unmask.finetuning.logits import row_logits

        numbers = row_logits(model, self.name, dataset)[:, 0].astype(np.float64) * self.std + self.mean
        return [NumberPrediction(number) for number in numbers.tolist()]


def target_numbers(examples: ExampleSet[TextExample]) -> Doubles:
    """The labels of examples as numbers."""
    pairs = zip(examples.examples, examples.source_lines, strict=True)
    return np.array([_number(example.truth, where) for example, where in pairs], dtype=np.float64)


def _number(truth: str, where: str) -> float:
    try:
        number = float(truth)
    except ValueError:
        raise InputError(
            f"{where}: the score {truth!r} is no number. Correct the line, or use --task-type classification."
        ) from None
    if not math.isfinite(number):
        raise InputError(f"{where}: the score {truth!r} is not a finite number. Correct the line, or remove it.")
    return number
