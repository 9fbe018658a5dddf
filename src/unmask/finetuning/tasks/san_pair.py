"""One class out of some, for a pair of texts that are compared word by word: does the first entail the second?

What arrives: labels as written. What leaves: `PairClass`, which asks through the answer module of SAN.
What never happens here: a single text. What is asked about one text, or read from the first token, is a `Classify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.core.errors import InputError, RecipeError
from unmask.core.records import InputsAndTargets, RowClass, Target
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import ClassificationTask, ClassPrediction
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class SANClassification(Objective):
    """Says which of some classes a pair of texts belongs to: the answer module of SAN (Liu et al., 2018)."""

    num_classes: int
    name: str = "pair"
    num_steps: int = 5
    """How often the memory looks at the first text; every look is a vote."""
    dropout: float = 0.1
    """The chance of a vote not to count in a training step; one of a row always does."""
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = RowClass

    def __post_init__(self) -> None:
        if self.num_steps < 1 or not 0 <= self.dropout < 1:
            raise RecipeError(
                f"An answer module needs at least 1 step and drops votes with a chance of at least 0 and below 1; "
                f"found {self.num_steps} steps and {self.dropout}."
            )

    @property
    def facts(self) -> frozenset[str]:
        """The fact about a row that it is told."""
        return frozenset({self.name})

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the classes as anywhere in the trunk."""
        from unmask.objectives.heads.san import SANHead

        return SANHead(backbone.config, self.name, self.num_classes, self.num_steps, self.dropout)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that the fact is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowClass) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class SANPairTask:
    """A class for each pair of texts."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "pair"
    num_steps: int = 5
    dropout: float = 0.1
    task_type: ClassVar[TaskType] = TaskType.SAN_PAIR

    @staticmethod
    def from_examples(sheet: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> SANPairTask:
        """The classes of a training file."""
        if len(sheet.examples[0].texts) != 2:
            raise InputError(
                f"{sheet.name}: a pair needs two texts in a row, found one. Name both fields (--text-columns ONE,TWO), or "
                "use --task-type classification."
            )
        return SANPairTask(ClassificationTask.from_examples(sheet, options).labels)

    @property
    def as_classification(self) -> ClassificationTask:
        """The same classes, without a word about how they are found."""
        return ClassificationTask(self.labels, self.name)

    @property
    def objective(self) -> SANClassification:
        """What a network learns to say."""
        return SANClassification(len(self.labels), self.name, self.num_steps, self.dropout)

    def notes(self, sheet: ExampleSet[TextExample]) -> Iterator[str]:
        """The classes and how often each occurs."""
        yield from self.as_classification.notes(sheet)
        yield f"pairs are compared word by word, in {self.num_steps} steps"

    def check(self, sheet: ExampleSet[TextExample]) -> None:
        """Refuse a label that is not one of the classes."""
        self.as_classification.check(sheet)

    def encode(
        self, sheet: ExampleSet[TextExample], tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """One row of tokens for each pair."""
        return self.as_classification.encode(sheet, tokenizer, limits, tick)

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[ClassPrediction]:
        """The likeliest class of each pair."""
        return self.as_classification.predict(learner, sheet, dataset)
