"""The rows of a task file as texts and truths, and some of them set aside to be judged by.

What arrives: a table and its fields. What leaves: a `Sheet`, or two that share no text.
What never happens here: a row without a label, or a label that is anything but a word or a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unmask.errors import InputError
from unmask.keys import Key, permute
from unmask.records import Bools
from unmask.text.rows import Row
from unmask.tune.fields import Fields
from unmask.tune.task_file import TaskFile

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Texts with their truths as written, and where each row stood."""

    name: str
    texts: tuple[Texts, ...]
    truths: tuple[str, ...]
    where: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def only(self, chosen: Bools) -> Sheet:
        """Some of the rows."""
        at = np.flatnonzero(chosen).tolist()
        texts, truths = tuple(self.texts[i] for i in at), tuple(self.truths[i] for i in at)
        return Sheet(self.name, texts, truths, tuple(self.where[i] for i in at))

    def shared_with(self, other: Sheet) -> int:
        """How many rows have a text that the other sheet has, too."""
        theirs = set(other.texts)
        return sum(text in theirs for text in self.texts)


def pick(table: TaskFile, fields: Fields) -> Sheet:
    """The wanted cells of every row."""
    texts = tuple(tuple(_text(row, name) for name in fields.texts) for row in table.rows)
    truths = tuple(_truth(row, fields.label) for row in table.rows)
    return Sheet(table.name, texts, truths, tuple(row.where for row in table.rows))


def set_aside(sheet: Sheet, share: float, seed: int) -> tuple[Sheet, Sheet]:
    """The sheet without some of its texts, and those. A text that stands there twice is never on both sides."""
    numbers: dict[Texts, int] = {}
    group = np.array([numbers.setdefault(text, len(numbers)) for text in sheet.texts], dtype=np.int64)
    if len(numbers) < 2:
        raise InputError(f"{sheet.name} holds one text only; some must be set aside to judge by. Give more, or --dev.")
    aside = max(1, round(share * len(numbers)))
    chosen: Bools = permute(group, len(numbers), Key.of(seed, "set aside")) < aside
    return sheet.only(~chosen), sheet.only(chosen)


def _text(row: Row, name: str) -> str:
    cell = row.fields.get(name)
    if isinstance(cell, str):
        return cell
    if name not in row.fields:
        raise InputError(f"{row.where}: there is no field {name!r}, which holds the text. Add it, or remove the line.")
    raise InputError(f"{row.where}: the field {name!r} should hold text and holds {_told(cell)}. Correct the line.")


def _truth(row: Row, name: str) -> str:
    """A label as written. Whole numbers are written without a point, so that 1 and 1.0 are one label."""
    cell = row.fields.get(name)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and math.isfinite(cell) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, str) and cell.strip():
        return cell.strip()
    if cell is None or isinstance(cell, str):
        raise InputError(f"{row.where}: the label is missing (field {name!r}). Add it, or remove the line.")
    raise InputError(f"{row.where}: the label {name!r} should be a word or a number and is {_told(cell)}.")


def _told(cell: object) -> str:
    """What JSON can hold, in words."""
    words = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return words.get(type(cell), "nothing")
