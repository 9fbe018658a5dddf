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

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Doubles
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowValues
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.row_tasks import Regression

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class NumberPrediction:
    """The number that is said about a row."""

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
    def from_examples(sheet: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> RegressionTask:
        """The scale of a training file."""
        numbers = target_numbers(sheet)
        spread = float(numbers.std())
        if not spread:
            raise InputError(
                f"{sheet.name}: all {len(sheet):,} rows have the score {sheet.examples[0].truth}; nothing can be "
                "learned."
            )
        return RegressionTask(float(numbers.mean()), spread, pooling=options.pooling)

    @property
    def objective(self) -> Regression:
        """What a network learns to say."""
        return Regression(self.name, pooling=self.pooling)

    def notes(self, sheet: ExampleSet[TextExample]) -> Iterator[str]:
        """Where the numbers lie."""
        yield f"a number is asked for, {self.mean:.3g} on average, give or take {self.std:.3g}"

    def check(self, sheet: ExampleSet[TextExample]) -> None:
        """Refuse what is no number."""
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            if question.truth:
                _number(question.truth, where)

    def encode(
        self, sheet: ExampleSet[TextExample], tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """One row of tokens for each question."""
        rows = encode_texts(
            [question.texts for question in sheet.examples], tokenizer, limits, sheet.source_lines, tick
        )
        if not all(question.truth for question in sheet.examples):
            return EncodedDataset(rows)
        return EncodedDataset(rows, RowValues(self.name, (target_numbers(sheet) - self.mean) / self.std))

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[NumberPrediction]:
        """The number of each row, in the units of the file."""
        from unmask.finetuning.logits import row_logits

        said = row_logits(learner, self.name, dataset)[:, 0].astype(np.float64) * self.std + self.mean
        return [NumberPrediction(number) for number in said.tolist()]


def target_numbers(sheet: ExampleSet[TextExample]) -> Doubles:
    """The truths of a sheet as numbers."""
    pairs = zip(sheet.examples, sheet.source_lines, strict=True)
    return np.array([_number(question.truth, where) for question, where in pairs], dtype=np.float64)


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
