"""A task as a user gives it: one file to learn from, perhaps one to be judged by, and what is read from them.

What arrives: paths, and what the user said about them. What leaves: a `Job` that has passed every check which needs no
network.
What never happens here: torch. A wrong label is found before a network is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from unmask.core.io.atomic import digest_file
from unmask.finetuning.data import choice as choice_module
from unmask.finetuning.data import classification, multilabel, ranking, seq2seq
from unmask.finetuning.data.choice import is_multiple_choice
from unmask.finetuning.data.classification import TextExample
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import AnyExampleSet, ExampleSet, split_dev
from unmask.finetuning.data.multilabel import is_multilabel
from unmask.finetuning.data.seq2seq import is_seq2seq
from unmask.finetuning.data.sniff import first_row
from unmask.finetuning.data.span_qa import questions
from unmask.finetuning.data.span_qa.files import is_span_qa_file
from unmask.finetuning.data.tagging import files as files_module
from unmask.finetuning.data.tagging.files import has_conll_suffix
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
"""From a path and the fields that the user named to questions (without truths on wish) and the fields that it read."""

TaskBuilder: TypeAlias = Callable[[AnyExampleSet, TaskOptions], TaskDefinition]
"""From the questions of a training file to what is asked."""

_TASK_TYPES: Mapping[TaskType, tuple[ExampleReader, TaskBuilder]] = MappingProxyType(
    {
        TaskType.CLASSIFICATION: (classification.read_classification, ClassificationTask.from_examples),
        TaskType.MULTILABEL: (multilabel.read_multilabel, MultiLabelTask.from_examples),
        TaskType.REGRESSION: (classification.read_classification, RegressionTask.from_examples),
        TaskType.TAGGING: (files_module.read_tagging, TaggingTask.from_examples),
        TaskType.SPAN_QA: (questions.read_span_qa, SpanQATask.from_examples),
        TaskType.MULTIPLE_CHOICE: (choice_module.read_choice, MultipleChoiceTask.from_examples),
        TaskType.RANKING: (ranking.read_ranking, RankingTask.from_examples),
        TaskType.SAN_PAIR: (classification.read_classification, SANPairTask.from_examples),
        TaskType.GENERATION: (seq2seq.read_seq2seq, GenerationTask.from_examples),
    }
)
DEV_FRACTION = 0.1
"""The share of the texts that is judged by where no second file is given."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """What is learned from, what is judged by, and what is asked."""

    task: TaskDefinition
    train: AnyExampleSet
    dev: AnyExampleSet
    columns: ColumnChoice
    """Which fields were read."""
    files: tuple[tuple[str, str], ...]
    """Name and digest of every file."""
    task_notes: tuple[str, ...] = ()
    """What is asked, in sentences."""

    @property
    def notes(self) -> Iterator[str]:
        """What was read, in sentences."""
        yield f"{self.train.name}: {len(self.train):,} rows to learn from; {self.columns}"
        yield from self.task_notes
        yield from self.train.notes
        if len(self.files) == 1:
            yield f"{len(self.dev):,} of its rows (1 text in {1 / DEV_FRACTION:.0f}) were set aside to judge by"
        else:
            yield f"{self.dev.name}: {len(self.dev):,} rows to judge by"
            yield from self.dev.notes
        both = self.dev.overlap(self.train)
        if both:
            yield f"note: {both:,} of the rows to judge by have a text that is also learned from"


def load_task_data(
    train: Path, dev: Path | None, options: TaskOptions = DEFAULT_TASK_OPTIONS, seed: int = 0
) -> TaskData:
    """Read a task. Without a file to judge by, one text in ten is set aside; without a kind, the file decides."""
    whole, choice, output = _load_training_file(train, options)
    learned, judged = (
        split_dev(whole, DEV_FRACTION, seed) if dev is None else (whole, read_examples(dev, output.task_type, choice))
    )
    output.check(judged)  # an unknown label is refused now, before anything is opened or made
    files = tuple((path.name, digest_file(path)) for path in (train, dev) if path is not None)
    return TaskData(output, _training_examples(output, learned), judged, choice, files, tuple(output.notes(learned)))


def _training_examples(output: TaskDefinition, sheet: AnyExampleSet) -> AnyExampleSet:
    """What is learned from: groups of candidates only where they tell some apart, and none too large for a batch."""
    return output.training_examples(sheet) if isinstance(output, RankingTask) else sheet


def read_examples(path: Path, task_type: TaskType, choice: ColumnChoice, truths: bool = True) -> AnyExampleSet:
    """The questions of another file of the same task; `truths`: whether it must tell them."""
    return _TASK_TYPES[task_type][0](path, choice, truths)[0]


def _load_training_file(path: Path, wish: TaskOptions) -> tuple[AnyExampleSet, ColumnChoice, TaskDefinition]:
    """Questions, the fields they stand in, and what is asked."""
    kind = wish.task_type or infer_task_type(path, wish.columns)
    sheet, choice = _TASK_TYPES[kind][0](path, wish.columns, True)
    if wish.task_type is None and kind is TaskType.CLASSIFICATION and labels_are_numbers(sheet):
        kind = TaskType.REGRESSION
    return sheet, choice, _TASK_TYPES[kind][1](sheet, wish)


def infer_task_type(path: Path, choice: ColumnChoice) -> TaskType:
    """What a file seems to ask, from its form and the names of its fields."""
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


def labels_are_numbers(sheet: ExampleSet[TextExample]) -> bool:
    """Whether the truths are numbers and some are not whole. A few that are no numbers are mistakes, not classes."""
    numbers = [number for question in sheet.examples for number in _as_number(question.truth)]
    return 2 * len(numbers) > len(sheet) and not all(number.is_integer() for number in numbers)


def _as_number(truth: str) -> tuple[float, ...]:
    """A truth as a number, or nothing."""
    try:
        return (float(truth),)
    except ValueError:
        return ()
