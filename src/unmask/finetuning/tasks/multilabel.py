"""Several labels for a text or a pair of texts; perhaps one, perhaps none.

What arrives: labels as written. What leaves: `Labels`, which knows them by number.
What never happens here: a label that training has never seen. Such a row is refused with its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Bits
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowMultiLabels
from unmask.finetuning.data.multilabel import MultiLabelExample
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import list_labels, sort_labels
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.row_tasks import MultiLabel

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class MultiLabelPrediction:
    """The labels that are likelier than not, the likeliest first, and how likely each is."""

    prediction: tuple[str, ...]
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The labels, and how sure the network is of each."""
        return {"prediction": list(self.prediction), "probabilities": [round(one, 6) for one in self.probabilities]}


@dataclass(frozen=True, slots=True)
class MultiLabelTask:
    """Labels for each row; each is said or not, whatever the others are."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "labels"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.MULTILABEL

    @staticmethod
    def from_examples(
        sheet: ExampleSet[MultiLabelExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> MultiLabelTask:
        """The labels of a training file."""
        labels = sort_labels({label for question in sheet.examples for label in question.truth})
        if len(labels) < 2:
            held = f"only the label {labels[0]!r}" if labels else "no label at all"
            raise InputError(f"{sheet.name}: {len(sheet):,} rows have {held}. Several labels means at least two.")
        return MultiLabelTask(labels, pooling=options.pooling)

    @property
    def objective(self) -> MultiLabel:
        """What a network learns to say."""
        return MultiLabel(len(self.labels), self.name, pooling=self.pooling)

    def notes(self, sheet: ExampleSet[MultiLabelExample]) -> Iterator[str]:
        """The labels, how often they occur, and how many a row has."""
        counts = Counter(label for question in sheet.examples for label in question.truth)
        often = ", ".join(f"{label} ({count / len(sheet):.0%})" for label, count in counts.most_common(6))
        rest = f", and {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
        none = sum(not question.truth for question in sheet.examples) / len(sheet)
        yield f"{len(self.labels)} labels: {often}{rest}"
        yield f"{counts.total() / len(sheet):.2g} labels a row on average; {none:.0%} of the rows have none"

    def check(self, sheet: ExampleSet[MultiLabelExample]) -> None:
        """Refuse a label that training has never seen."""
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            strange = next((label for label in question.truth if label not in self.labels), "")
            if strange:
                raise InputError(
                    f"{where}: the label {strange!r} does not occur in the training file, which has "
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
        sheet: ExampleSet[MultiLabelExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each question."""
        rows = encode_texts(
            [question.texts for question in sheet.examples], tokenizer, limits, sheet.source_lines, tick
        )
        if not all(question.is_known for question in sheet.examples):
            return EncodedDataset(rows)
        return EncodedDataset(
            rows, RowMultiLabels(self.name, self.bits([question.truth for question in sheet.examples]))
        )

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[MultiLabelExample], dataset: EncodedDataset
    ) -> Sequence[MultiLabelPrediction]:
        """The labels of each row that are likelier than not."""
        from unmask.finetuning.logits import row_logits

        scores_NC = row_logits(learner, self.name, dataset).astype(np.float64)
        likely_NC = np.exp(-np.logaddexp(0, -scores_NC))
        return [self._predict_row(row) for row in likely_NC.tolist()]

    def _predict_row(self, likely: Sequence[float]) -> MultiLabelPrediction:
        found = sorted(((share, place) for place, share in enumerate(likely) if share >= 0.5), key=lambda one: -one[0])
        return MultiLabelPrediction(tuple(self.labels[place] for _, place in found), tuple(share for share, _ in found))
