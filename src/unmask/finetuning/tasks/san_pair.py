"""Classification of a pair of texts by the answer module of SAN, which compares them word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.core.errors import InputError, RecipeError
from unmask.core.records import InputsAndTargets, RowClass, Target
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import ClassificationTask, ClassPrediction
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class SANClassification(Objective):
    """Classify a pair of texts with the answer module of SAN (Liu et al., 2018)."""

    num_classes: int
    name: str = "pair"
    num_steps: int = 5
    """Reasoning steps; each one predicts the class, and the predictions are averaged."""
    dropout: float = 0.1
    """The probability that the prediction of a step is left out in training; one per row is always used."""
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = RowClass

    def __post_init__(self) -> None:
        if self.num_steps < 1 or not 0 <= self.dropout < 1:
            raise RecipeError(
                f"The SAN answer module needs at least 1 step and a dropout of at least 0 and below 1; "
                f"found {self.num_steps} steps and {self.dropout}."
            )

    @property
    def facts(self) -> frozenset[str]:
        """The row fact that is the target."""
        return frozenset({self.name})

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The answer module over both texts."""
        from unmask.objectives.heads.san import SANHead

        return SANHead(backbone.config, self.name, self.num_classes, self.num_steps, self.dropout)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each labelled row."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowClass) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class SANPairTask:
    """A class for each pair of texts."""

    labels: tuple[str, ...]
    """In the order of their indices."""
    name: str = "pair"
    num_steps: int = 5
    dropout: float = 0.1
    task_type: ClassVar[TaskType] = TaskType.SAN_PAIR

    @staticmethod
    def from_examples(examples: ExampleSet[TextExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> SANPairTask:
        """The classes of a training file."""
        if len(examples.examples[0].texts) != 2:
            raise InputError(
                f"{examples.name}: a pair needs two texts in a row, found one. Name both columns (--text-columns "
                "ONE,TWO), or use --task-type classification."
            )
        return SANPairTask(ClassificationTask.from_examples(examples, options).labels)

    @property
    def as_classification(self) -> ClassificationTask:
        """The same classes as plain classification."""
        return ClassificationTask(self.labels, self.name)

    @property
    def objective(self) -> SANClassification:
        """The training objective."""
        return SANClassification(len(self.labels), self.name, self.num_steps, self.dropout)

    def notes(self, examples: ExampleSet[TextExample]) -> Iterator[str]:
        """The classes and their frequencies."""
        yield from self.as_classification.notes(examples)
        yield f"pairs are compared word by word, in {self.num_steps} steps"

    def check(self, examples: ExampleSet[TextExample]) -> None:
        """Refuse a label that is no class of the training file."""
        self.as_classification.check(examples)

    def encode(
        self,
        examples: ExampleSet[TextExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each pair."""
        return self.as_classification.encode(examples, tokenizer, limits, tick)

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[TextExample], dataset: EncodedDataset
    ) -> Sequence[ClassPrediction]:
        """The most probable class of each pair."""
        return self.as_classification.predict(model, examples, dataset)
