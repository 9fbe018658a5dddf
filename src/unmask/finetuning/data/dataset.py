"""Labelled examples: sets of them, the reader that makes them from a task file, and the train/dev split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from unmask.core.errors import InputError
from unmask.core.records import Bools
from unmask.core.rng import Key, permuted_index
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.table_file import TaskFile, read_task_file

Texts: TypeAlias = tuple[str, ...]


class TaskExample(Protocol):
    """One labelled or unlabelled example of a task: a frozen value."""

    @property
    def texts(self) -> Texts:
        """The texts that are read. Examples with the same texts are never split between train and dev."""

    def to_json(self) -> Mapping[str, object]:
        """The example as part of a line of `predictions.jsonl`."""


E = TypeVar("E", bound=TaskExample, covariant=True)


@dataclass(frozen=True, slots=True)
class ExampleSet(Generic[E]):
    """Examples in the order of their file, and the line of each."""

    name: str
    examples: tuple[E, ...]
    source_lines: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Sentences about the file for the user."""

    def __len__(self) -> int:
        return len(self.examples)

    def select(self, mask: Bools) -> ExampleSet[E]:
        """The examples where the mask is true."""
        at = np.flatnonzero(mask).tolist()
        return replace(
            self, examples=tuple(self.examples[i] for i in at), source_lines=tuple(self.source_lines[i] for i in at)
        )

    def overlap(self, other: AnyExampleSet) -> int:
        """How many examples have texts that also occur in the other set."""
        texts = {example.texts for example in other.examples}
        return sum(example.texts in texts for example in self.examples)


AnyExampleSet: TypeAlias = ExampleSet[Any]
Converter: TypeAlias = Callable[[TaskFile, ColumnChoice, bool], ExampleSet[E]]


def load_table(path: Path, columns: ColumnChoice) -> TaskFile:
    """The rows of a task file; column numbers mean that it has no header."""
    return read_task_file(path, columns.is_numbered)


@dataclass(frozen=True, slots=True)
class TaskReader(Generic[E]):
    """Reads the files of one task type in three steps: load rows, choose columns, convert rows to examples."""

    choose: Callable[[TaskFile, ColumnChoice, bool], ColumnChoice]
    """Completes the columns that the user named; the flag is whether labels are needed."""
    convert: Converter[E]
    load: Callable[[Path, ColumnChoice], TaskFile] = load_table

    def __call__(
        self, path: Path, columns: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
    ) -> tuple[ExampleSet[E], ColumnChoice]:
        """The examples of a file and the columns that were read. Without `truths`, labels are not read."""
        table = self.load(path, columns)
        chosen = self.choose(table, columns, truths)
        return self.convert(table, chosen, truths), chosen


def row_by_row(convert: Callable[[RawRow, ColumnChoice, bool], E]) -> Converter[E]:
    """A converter that makes one example of each row."""

    def to_examples(table: TaskFile, columns: ColumnChoice, truths: bool) -> ExampleSet[E]:
        return ExampleSet(table.name, tuple(convert(row, columns, truths) for row in table.rows), table.source_lines)

    return to_examples


def split_dev(examples: ExampleSet[E], fraction: float, seed: int) -> tuple[ExampleSet[E], ExampleSet[E]]:
    """Training and dev examples. Examples with the same texts stay together, by a keyed permutation of the texts."""
    numbers: dict[Texts, int] = {}
    group = np.array([numbers.setdefault(one.texts, len(numbers)) for one in examples.examples], dtype=np.int64)
    if len(numbers) < 2:
        raise InputError(
            f"{examples.name} holds one text only, and a dev set must be split off. Add texts, or give --dev-file."
        )
    num_dev = max(1, round(fraction * len(numbers)))
    is_dev: Bools = permuted_index(group, len(numbers), Key.of(seed, "set aside")) < num_dev
    return examples.select(~is_dev), examples.select(is_dev)
