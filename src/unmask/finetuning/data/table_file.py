"""Task files as tables: rows with named cells, nested lists unfolded, and typed access to single cells.

Every row is used: a line that cannot be read is refused with its number and never skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.conll import ConllVariant
from unmask.data.text.files.delimited import (
    FORMATS_WITH_COLUMNS,
    TableFormat,
    any_of_text,
    byte_lines,
    find_file,
    read_table,
)
from unmask.data.text.files.lines import RawRow

_CONLL_FORMATS = tuple(form for form in ConllVariant if form is not ConllVariant.TABS)
_JSON_TYPES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The rows of a task file; each row knows its place, `file:line`."""

    name: str
    format: TableFormat
    columns: tuple[str, ...]
    """From the header or the first row; numbers from 1 for files without a header."""
    rows: tuple[RawRow, ...]

    @property
    def source_lines(self) -> tuple[str, ...]:
        """The place of each row."""
        return tuple(row.where for row in self.rows)

    @property
    def first_line(self) -> str:
        """The place of the first row."""
        return self.rows[0].where

    def unfold(self, nested: Sequence[str]) -> TaskFile:
        """One row for each object in a nested list, together with the other fields of its row."""
        rows = tuple(one for row in self.rows for one in unfold_row(row, nested))
        if not rows:
            raise InputError(f"{self.name} holds no rows: the lists in its lines are all empty.")
        return replace(self, rows=rows, columns=tuple(rows[0].fields))


def read_task_file(path: Path, has_no_header: bool = False) -> TaskFile:
    """Read a `.jsonl`, `.csv` or `.tsv` file. Without a header, columns are numbered from 1."""
    source, form = find_file(path, FORMATS_WITH_COLUMNS)
    table = read_table(byte_lines(source), source.name, form, has_no_header)
    rows = tuple(table.rows)
    if not rows:
        raise InputError(f"{path} holds no rows. A task file needs one row per text and, for training, its label.")
    return TaskFile(source.name, form, table.columns, rows)


def first_row(path: Path) -> RawRow:
    """The first row of a table, without reading on; a row without fields if the file is empty or no table."""
    source, form = find_file(path, (*FORMATS_WITH_COLUMNS, TableFormat.JSON, *_CONLL_FORMATS))
    if form is ConllVariant.TEXT:
        tables = any_of_text((*FORMATS_WITH_COLUMNS, TableFormat.JSON))
        raise InputError(
            f"{path}: the task type of a .txt file cannot be inferred. For words in columns use --task-type tagging "
            f'(or task_type = "tagging" in a file of tasks); other tasks need a file that ends with {tables}.'
        )
    if not isinstance(form, TableFormat) or form not in FORMATS_WITH_COLUMNS:
        return RawRow(source.name, {})
    return next(read_table(byte_lines(source), source.name, form).rows, RawRow(source.name, {}))


def unfold_row(row: RawRow, nested: Sequence[str]) -> Iterator[RawRow]:
    """One row for each object in a nested list; the row itself if it has no such list."""
    name = next((one for one in nested if _is_list_of_objects(row.fields.get(one))), "")
    inside = row.fields.get(name)
    if not isinstance(inside, list):
        yield row
        return
    shared = {other: cell for other, cell in row.fields.items() if other != name}
    for number, fields in enumerate(inside, start=1):
        yield RawRow(f"{row.where} ({name} {number})", {**shared, **fields})


def _is_list_of_objects(cell: object) -> bool:
    return isinstance(cell, list) and all(isinstance(one, dict) for one in cell)


def text_cell(row: RawRow, name: str) -> str:
    """A cell that must hold text."""
    cell = row.fields.get(name)
    if isinstance(cell, str):
        return cell
    if name not in row.fields:
        raise InputError(f"{row.where}: there is no column {name!r} for the text. Add it, or remove the line.")
    raise InputError(
        f"{row.where}: the column {name!r} should hold text and holds {json_type_name(cell)}. Correct the line."
    )


def label_cell(row: RawRow, name: str) -> str:
    """A cell that must hold one label."""
    cell = row.fields.get(name)
    label = label_text(cell)
    if label:
        return label
    if cell is None or isinstance(cell, str):
        raise InputError(
            f"{row.where}: the label is missing (column {name!r}). Add it, or remove the line. If rows may have "
            "several labels or none, use --task-type multilabel."
        )
    raise InputError(f"{row.where}: the label {name!r} should be a word or a number and is {json_type_name(cell)}.")


def list_cell(row: RawRow, name: str) -> list[object]:
    """A cell that must hold a list."""
    cell = row.fields.get(name)
    if isinstance(cell, list):
        return cell
    if name in row.fields:
        raise InputError(
            f"{row.where}: {name!r} should hold a list and holds {json_type_name(cell)}. Correct the line."
        )
    raise InputError(f"{row.where}: there is no column {name!r}. Add it, or remove the line.")


def label_text(cell: object) -> str:
    """A label as text, empty if the cell holds none. Whole numbers lose their point: 1 and 1.0 are one label."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and math.isfinite(cell) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, int | float):
        return str(cell)
    return cell.strip() if isinstance(cell, str) else ""


def json_type_name(cell: object) -> str:
    """The JSON type of a value, in words."""
    return _JSON_TYPES.get(type(cell), "nothing")
