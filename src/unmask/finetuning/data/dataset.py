"""The questions of a task file with their truths, and some of them set aside to be judged by.

What arrives: a table and its fields. What leaves: a `Sheet`, or two that share no text.
What never happens here: a row without a label, or a label that is anything but a word or a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from unmask.core.errors import InputError
from unmask.core.records import Bools
from unmask.core.rng import Key, permuted_index
from unmask.data.text.files.lines import RawRow

Texts: TypeAlias = tuple[str, ...]


class TaskExample(Protocol):
    """What one row of a task file asks, with the truth about it: a frozen value."""

    @property
    def texts(self) -> Texts:
        """What is read. Questions about the same texts never stand on both sides."""

    def to_json(self) -> Mapping[str, object]:
        """The question with its truth, as a line of `predictions.jsonl`."""


Q = TypeVar("Q", bound=TaskExample, covariant=True)


@dataclass(frozen=True, slots=True)
class ExampleSet(Generic[Q]):
    """Questions in the order of their file, and where each of them stood."""

    name: str
    examples: tuple[Q, ...]
    source_lines: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the user should know about the file, in sentences."""

    def __len__(self) -> int:
        return len(self.examples)

    def select(self, mask: Bools) -> ExampleSet[Q]:
        """Some of the questions."""
        at = np.flatnonzero(mask).tolist()
        return replace(
            self, examples=tuple(self.examples[i] for i in at), source_lines=tuple(self.source_lines[i] for i in at)
        )

    def overlap(self, other: AnyExampleSet) -> int:
        """How many questions have texts that the other sheet has, too."""
        theirs = {question.texts for question in other.examples}
        return sum(question.texts in theirs for question in self.examples)


AnyExampleSet: TypeAlias = ExampleSet[Any]


def split_dev(sheet: ExampleSet[Q], fraction: float, seed: int) -> tuple[ExampleSet[Q], ExampleSet[Q]]:
    """The sheet without some of its texts, and those. A text that stands there twice is never on both sides."""
    numbers: dict[Texts, int] = {}
    group = np.array([numbers.setdefault(one.texts, len(numbers)) for one in sheet.examples], dtype=np.int64)
    if len(numbers) < 2:
        raise InputError(f"{sheet.name} holds one text only; some must be set aside to judge by. Give more, or --dev-file.")
    aside = max(1, round(fraction * len(numbers)))
    chosen: Bools = permuted_index(group, len(numbers), Key.of(seed, "set aside")) < aside
    return sheet.select(~chosen), sheet.select(chosen)


def text_of(row: RawRow, name: str) -> str:
    """A cell that holds text."""
    cell = row.fields.get(name)
    if isinstance(cell, str):
        return cell
    if name not in row.fields:
        raise InputError(f"{row.where}: there is no field {name!r}, which holds the text. Add it, or remove the line.")
    raise InputError(
        f"{row.where}: the field {name!r} should hold text and holds {json_type_name(cell)}. Correct the line."
    )


def truth_of(row: RawRow, name: str) -> str:
    """A cell that holds a label, as written. Whole numbers have no point, so that 1 and 1.0 are one label."""
    cell = row.fields.get(name)
    written = label_of(cell)
    if written:
        return written
    if cell is None or isinstance(cell, str):
        raise InputError(
            f"{row.where}: the label is missing (field {name!r}). Add it, or remove the line. If rows may have several "
            "labels or none, use --task-type multilabel."
        )
    raise InputError(f"{row.where}: the label {name!r} should be a word or a number and is {json_type_name(cell)}.")


def label_of(cell: object) -> str:
    """A label as written; empty if it is none."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and math.isfinite(cell) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, int | float):
        return str(cell)
    return cell.strip() if isinstance(cell, str) else ""


def json_type_name(cell: object) -> str:
    """What JSON can hold, in words."""
    words = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return words.get(type(cell), "nothing")
