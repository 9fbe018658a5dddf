"""Multiple choice: one of several given choices.

Each choice is scored in a row of its own, `[CLS] context [SEP] question choice [SEP]` as for SWAG (Devlin et al., 2018,
4.4), or without a context `[CLS] question [SEP] choice [SEP]`; a softmax over the scores compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.records import CandidateGroups, Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.choice import ChoiceExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, encode_groups, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.row_tasks import Ranking

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class ChoicePrediction:
    """The most probable choice, and the probability of each choice in order."""

    prediction: str
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The choice and its probability."""
        return {"prediction": self.prediction, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class MultipleChoiceTask:
    """One choice for each example."""

    name: str = "choose"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.MULTIPLE_CHOICE

    @staticmethod
    def from_examples(
        examples: ExampleSet[ChoiceExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> MultipleChoiceTask:
        """The task; the training file decides nothing."""
        return MultipleChoiceTask(pooling=options.pooling)

    @property
    def objective(self) -> Ranking:
        """The training objective."""
        return Ranking(self.name, pooling=self.pooling)

    def notes(self, examples: ExampleSet[ChoiceExample]) -> Iterator[str]:
        """The number of choices, and the accuracy of random guessing."""
        counts = choice_counts(examples)
        many = f"{counts.min()} to {counts.max()}" if np.ptp(counts) else str(counts[0])
        yield f"{many} choices per question; random guessing has an accuracy of {float(np.mean(1 / counts)):.0%}"

    def check(self, examples: ExampleSet[ChoiceExample]) -> None:
        """Every question that could be read is valid."""

    def encode(
        self,
        examples: ExampleSet[ChoiceExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each choice; a group is a question with all its choices."""
        texts = [list(choice_rows(example)) for example in examples.examples]
        rows, groups = encode_groups(texts, examples.source_lines, tokenizer, limits, tick)
        if not all(example.truth for example in examples.examples):
            return EncodedDataset(rows, groups=groups)
        value = np.zeros(len(rows))
        value[groups[:-1] + gold_indices([example.truth for example in examples.examples], examples)] = 1.0
        return EncodedDataset(rows, RowTargets(CandidateGroups(self.name, groups, value)), groups)

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[ChoiceExample], dataset: EncodedDataset
    ) -> Sequence[ChoicePrediction]:
        """The likeliest choice of each example."""
        from unmask.finetuning.logits import row_logits, softmax

        scores_N = row_logits(model, self.name, dataset)[:, 0]
        found = [softmax(scores_N[first:end]) for first, end in pairwise(dataset.group_offsets.tolist())]
        return [
            ChoicePrediction(example.choices[int(likely.argmax())], tuple(likely.tolist()))
            for example, likely in zip(examples.examples, found, strict=True)
        ]


def choice_counts(examples: ExampleSet[ChoiceExample]) -> Ints:
    """How many choices each example has."""
    return np.array([len(example.choices) for example in examples.examples], dtype=np.int64)


def gold_indices(truths: Sequence[str], examples: ExampleSet[ChoiceExample]) -> Ints:
    """The index of each text among the choices of its question."""
    pairs = zip(truths, examples.examples, strict=True)
    return np.array([example.choices.index(truth) for truth, example in pairs], dtype=np.int64)


def choice_rows(example: ChoiceExample) -> Iterator[tuple[str, str]]:
    """The two parts of the row of each choice: the context, then the example with the choice."""
    for one in example.choices:
        yield example.context[0], " ".join((*example.context[1:], one))
