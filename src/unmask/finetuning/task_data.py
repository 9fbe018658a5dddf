"""Training and dev examples of a task, loaded and checked before a model is opened, without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from unmask.core.io.atomic import digest_file
from unmask.finetuning.data.choice import is_multiple_choice, read_choice
from unmask.finetuning.data.classification import TextExample, is_multilabel, read_classification, read_multilabel
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import AnyExampleSet, ExampleSet, split_dev
from unmask.finetuning.data.ranking import read_ranking
from unmask.finetuning.data.seq2seq import is_seq2seq, read_seq2seq
from unmask.finetuning.data.span_qa.files import is_span_qa_file
from unmask.finetuning.data.span_qa.questions import read_span_qa
from unmask.finetuning.data.table_file import first_row
from unmask.finetuning.data.tagging.files import has_conll_suffix, read_tagging
from unmask.finetuning.data.tagging.json_rows import is_tagged
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.generation import GenerationTask
from unmask.finetuning.tasks.multilabel import MultiLabelTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.protocol import TaskDefinition, TaskType
from unmask.finetuning.tasks.ranking import RankingTask
from unmask.finetuning.tasks.regression import RegressionTask
from unmask.finetuning.tasks.san_pair import SANPairTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask

ExampleReader: TypeAlias = Callable[[Path, ColumnChoice, bool], tuple[AnyExampleSet, ColumnChoice]]
"""From a path, the columns that the user named and `truths` to examples and the columns that were read."""

TaskBuilder: TypeAlias = Callable[[AnyExampleSet, TaskOptions], TaskDefinition]
"""From the training examples to the task."""

_TASK_TYPES: Mapping[TaskType, tuple[ExampleReader, TaskBuilder]] = MappingProxyType(
    {
        TaskType.CLASSIFICATION: (read_classification, ClassificationTask.from_examples),
        TaskType.MULTILABEL: (read_multilabel, MultiLabelTask.from_examples),
        TaskType.REGRESSION: (read_classification, RegressionTask.from_examples),
        TaskType.TAGGING: (read_tagging, TaggingTask.from_examples),
        TaskType.SPAN_QA: (read_span_qa, SpanQATask.from_examples),
        TaskType.MULTIPLE_CHOICE: (read_choice, MultipleChoiceTask.from_examples),
        TaskType.RANKING: (read_ranking, RankingTask.from_examples),
        TaskType.SAN_PAIR: (read_classification, SANPairTask.from_examples),
        TaskType.GENERATION: (read_seq2seq, GenerationTask.from_examples),
    }
)
DEV_FRACTION = 0.1
"""The fraction of the texts that is split off as dev set if there is no dev file."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task with its training and dev examples."""

    task: TaskDefinition
    train: AnyExampleSet
    dev: AnyExampleSet
    columns: ColumnChoice
    """The columns that were read."""
    files: tuple[tuple[str, str], ...]
    """Name and digest of every file."""
    task_notes: tuple[str, ...] = ()
    """Sentences about the task for the user."""

    @property
    def notes(self) -> Iterator[str]:
        """Sentences about the data for the user."""
        yield f"{self.train.name}: {len(self.train):,} training rows; {self.columns}"
        yield from self.task_notes
        yield from self.train.notes
        if len(self.files) == 1:
            yield f"{len(self.dev):,} of its rows (1 text in {1 / DEV_FRACTION:.0f}) were split off as dev set"
        else:
            yield f"{self.dev.name}: {len(self.dev):,} dev rows"
            yield from self.dev.notes
        overlap = self.dev.overlap(self.train)
        if overlap:
            yield f"note: {overlap:,} dev rows have a text that is also in the training data"


def load_task_data(
    train: Path, dev: Path | None, options: TaskOptions = DEFAULT_TASK_OPTIONS, seed: int = 0
) -> TaskData:
    """Read a task. Without a dev file one text in ten is split off; without a task type it is inferred."""
    whole, columns, task = _load_training_file(train, options)
    train_set, dev_set = (
        split_dev(whole, DEV_FRACTION, seed) if dev is None else (whole, read_examples(dev, task.task_type, columns))
    )
    task.check(dev_set)
    files = tuple((path.name, digest_file(path)) for path in (train, dev) if path is not None)
    return TaskData(task, _training_examples(task, train_set), dev_set, columns, files, tuple(task.notes(train_set)))


def _training_examples(task: TaskDefinition, examples: AnyExampleSet) -> AnyExampleSet:
    """The examples to train on; ranking drops groups without a contrast and splits large ones."""
    return task.training_examples(examples) if isinstance(task, RankingTask) else examples


def read_examples(path: Path, task_type: TaskType, columns: ColumnChoice, truths: bool = True) -> AnyExampleSet:
    """The examples of another file of the same task, with or without labels."""
    return _TASK_TYPES[task_type][0](path, columns, truths)[0]


def _load_training_file(path: Path, options: TaskOptions) -> tuple[AnyExampleSet, ColumnChoice, TaskDefinition]:
    """Examples, the columns that were read, and the task."""
    task_type = options.task_type or infer_task_type(path, options.columns)
    examples, columns = _TASK_TYPES[task_type][0](path, options.columns, True)
    if options.task_type is None and task_type is TaskType.CLASSIFICATION and labels_are_numbers(examples):
        task_type = TaskType.REGRESSION
    return examples, columns, _TASK_TYPES[task_type][1](examples, options)


def infer_task_type(path: Path, choice: ColumnChoice) -> TaskType:
    """The task type of a file, inferred from its format and its columns."""
    if has_conll_suffix(path):
        return TaskType.TAGGING
    if choice.is_numbered:
        return TaskType.CLASSIFICATION  # no names to go by
    first = first_row(path)
    if is_tagged(first):
        return TaskType.TAGGING
    if is_multiple_choice(first, choice):
        return TaskType.MULTIPLE_CHOICE
    if is_multilabel(first, choice):
        return TaskType.MULTILABEL
    if is_seq2seq(first):
        return TaskType.GENERATION
    return TaskType.SPAN_QA if is_span_qa_file(path) else TaskType.CLASSIFICATION


def labels_are_numbers(examples: ExampleSet[TextExample]) -> bool:
    """Whether most labels are numbers and some are not whole; a few other labels are mistakes, not classes."""
    numbers = [number for example in examples.examples for number in _as_number(example.truth)]
    return 2 * len(numbers) > len(examples) and not all(number.is_integer() for number in numbers)


def _as_number(truth: str) -> tuple[float, ...]:
    """A label as a number, or nothing."""
    try:
        return (float(truth),)
    except ValueError:
        return ()
