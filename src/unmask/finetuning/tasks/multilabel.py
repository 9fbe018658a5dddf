"""Multi-label classification: any number of labels for a text or a pair of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Bits, RowMultiLabel
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import MultiLabelExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, encode_examples, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import list_labels, sort_labels
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.row_tasks import MultiLabel

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class MultiLabelPrediction:
    """The labels with a probability of at least one half, most probable first."""

    prediction: tuple[str, ...]
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The labels and their probabilities."""
        return {"prediction": list(self.prediction), "probabilities": [round(one, 6) for one in self.probabilities]}


@dataclass(frozen=True, slots=True)
class MultiLabelTask:
    """Labels for each row, each predicted independently."""

    labels: tuple[str, ...]
    """In the order of their indices."""
    name: str = "labels"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.MULTILABEL

    @staticmethod
    def from_examples(
        examples: ExampleSet[MultiLabelExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> MultiLabelTask:
        """The labels of a training file."""
        labels = sort_labels({label for example in examples.examples for label in example.truth})
        if len(labels) < 2:
            held = f"only the label {labels[0]!r}" if labels else "no label at all"
            raise InputError(
                f"{examples.name}: {len(examples):,} rows have {held}. Multi-label classification needs at least two."
            )
        return MultiLabelTask(labels, pooling=options.pooling)

    @property
    def objective(self) -> MultiLabel:
        """The training objective."""
        return MultiLabel(len(self.labels), self.name, pooling=self.pooling)

    def notes(self, examples: ExampleSet[MultiLabelExample]) -> Iterator[str]:
        """The labels, their frequencies, and how many a row has."""
        counts = Counter(label for example in examples.examples for label in example.truth)
        often = ", ".join(f"{label} ({count / len(examples):.0%})" for label, count in counts.most_common(6))
        rest = f", and {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
        none = sum(not example.truth for example in examples.examples) / len(examples)
        yield f"{len(self.labels)} labels: {often}{rest}"
        yield f"{counts.total() / len(examples):.2g} labels a row on average; {none:.0%} of the rows have none"

    def check(self, examples: ExampleSet[MultiLabelExample]) -> None:
        """Refuse a label that does not occur in the training file."""
        for example, where in zip(examples.examples, examples.source_lines, strict=True):
            unknown = next((label for label in example.truth if label not in self.labels), "")
            if unknown:
                raise InputError(
                    f"{where}: the label {unknown!r} does not occur in the training file, which has "
                    f"{list_labels(self.labels)}. Correct the line, or add rows with this label to the training file."
                )

    def bits(self, sets: Sequence[Sequence[str]]) -> Bits:
        """One bit for each row and label: 1 where the row has it."""
        number = {label: place for place, label in enumerate(self.labels)}
        value_NC = np.zeros((len(sets), len(self.labels)), dtype=np.uint8)
        for row, held in enumerate(sets):
            value_NC[row, [number[label] for label in held]] = 1
        return value_NC

    def encode(
        self,
        examples: ExampleSet[MultiLabelExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each example."""
        rows = encode_examples(examples, tokenizer, limits, tick)
        if not all(example.is_known for example in examples.examples):
            return EncodedDataset(rows)
        bits = self.bits([example.truth for example in examples.examples])
        return EncodedDataset(rows, RowTargets(RowMultiLabel(self.name, bits)))

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[MultiLabelExample], dataset: EncodedDataset
    ) -> Sequence[MultiLabelPrediction]:
        """The labels of each example with a probability of at least one half."""
        from unmask.finetuning.logits import row_logits

        scores_NC = row_logits(model, self.name, dataset).astype(np.float64)
        likely_NC = np.exp(-np.logaddexp(0, -scores_NC))
        return [self._predict_row(row) for row in likely_NC.tolist()]

    def _predict_row(self, likely: Sequence[float]) -> MultiLabelPrediction:
        found = sorted(((share, place) for place, share in enumerate(likely) if share >= 0.5), key=lambda one: -one[0])
        return MultiLabelPrediction(tuple(self.labels[place] for _, place in found), tuple(share for share, _ in found))
