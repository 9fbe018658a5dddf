"""One of several given answers: multiple choice.

What arrives: questions with their choices. What leaves: `Choose`, which reads each choice in a row of its own.
What never happens here: choices that are read together. Each is scored alone, and a softmax compares the scores.

A row is `[CLS] context [SEP] question choice [SEP]`, as BERT was tuned on SWAG (Devlin et al., 2018, 4.4); without a
context `[CLS] question [SEP] choice [SEP]`. A row that is too long loses the end of its longer part, so mostly of the
context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.ragged import offsets
from unmask.core.records import Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.choice import ChoiceExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import CandidateValues, EncodedDataset
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.row_tasks import Ranking

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class ChoicePrediction:
    """The likeliest choice, and how likely each choice is, in the order of the question."""

    prediction: str
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The choice, and how sure the network is of it."""
        return {"prediction": self.prediction, "probability": round(max(self.probabilities), 6)}


@dataclass(frozen=True, slots=True)
class MultipleChoiceTask:
    """One choice for each question."""

    name: str = "choose"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.MULTIPLE_CHOICE

    @staticmethod
    def from_examples(
        sheet: ExampleSet[ChoiceExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> MultipleChoiceTask:
        """Nothing depends on the file: choices have no numbers of their own."""
        return MultipleChoiceTask(pooling=options.pooling)

    @property
    def objective(self) -> Ranking:
        """What a network learns to say."""
        return Ranking(self.name, pooling=self.pooling)

    def notes(self, sheet: ExampleSet[ChoiceExample]) -> Iterator[str]:
        """How many choices there are."""
        counts = choice_counts(sheet)
        many = f"{counts.min()} to {counts.max()}" if np.ptp(counts) else str(counts[0])
        yield f"{many} choices a question; guessing would be right in {float(np.mean(1 / counts)):.0%}"

    def check(self, sheet: ExampleSet[ChoiceExample]) -> None:
        """Whatever could be read can be asked."""

    def encode(
        self,
        sheet: ExampleSet[ChoiceExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each choice; an item is a question with all its choices."""
        counts = choice_counts(sheet)
        items = offsets(counts)
        texts = [row for question in sheet.examples for row in choice_rows(question)]
        where = np.repeat(np.array(sheet.source_lines, dtype=object), counts).tolist()
        rows = encode_texts(
            texts, tokenizer, limits, where, lambda done: tick(int(np.searchsorted(items, done, "right")) - 1)
        )
        if not all(question.truth for question in sheet.examples):
            return EncodedDataset(rows, groups=items)
        value = np.zeros(len(texts))
        value[items[:-1] + gold_indices([question.truth for question in sheet.examples], sheet)] = 1.0
        return EncodedDataset(rows, CandidateValues(self.name, value), items)

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[ChoiceExample], dataset: EncodedDataset
    ) -> Sequence[ChoicePrediction]:
        """The likeliest choice of each question."""
        from unmask.finetuning.logits import row_logits, softmax

        scores_N = row_logits(learner, self.name, dataset)[:, 0]
        found = [softmax(scores_N[first:end]) for first, end in pairwise(dataset.group_offsets.tolist())]
        return [
            ChoicePrediction(question.choices[int(likely.argmax())], tuple(likely.tolist()))
            for question, likely in zip(sheet.examples, found, strict=True)
        ]


def choice_counts(sheet: ExampleSet[ChoiceExample]) -> Ints:
    """How many choices each question has."""
    return np.array([len(question.choices) for question in sheet.examples], dtype=np.int64)


def gold_indices(truths: Sequence[str], sheet: ExampleSet[ChoiceExample]) -> Ints:
    """Where each of some texts stands among the choices of its question."""
    pairs = zip(truths, sheet.examples, strict=True)
    return np.array([question.choices.index(truth) for truth, question in pairs], dtype=np.int64)


def choice_rows(question: ChoiceExample) -> Iterator[tuple[str, str]]:
    """The two parts of the row of each choice: the context, then the question with the choice."""
    for one in question.choices:
        yield question.context[0], " ".join((*question.context[1:], one))
