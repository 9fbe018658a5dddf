"""The first row of a task file, by which its kind is guessed.

What arrives: a path. What leaves: one row. What never happens here: reading on; a file may be large, and its kind is
asked for before anything else is known about it.
"""

from __future__ import annotations

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

_WORDS = tuple(form for form in ConllVariant if form is not ConllVariant.TABS)
"""Files of words in columns whose ending is not that of a table."""


def first_row(path: Path) -> RawRow:
    """The first row of a table; a row without fields if the file holds none, or is no table."""
    source, form = find_file(path, (*FORMATS_WITH_COLUMNS, TableFormat.JSON, *_WORDS))
    if form is ConllVariant.TEXT:
        raise InputError(
            f"{path}: a .txt file does not say what it holds. If it has words in columns, say so (--task-type tagging, or "
            f'kind = "tag" in a file of tasks); other tasks need a file that ends with {any_of_text((*FORMATS_WITH_COLUMNS, TableFormat.JSON))}.'
        )
    if not isinstance(form, TableFormat) or form not in FORMATS_WITH_COLUMNS:
        return RawRow(source.name, {})
    return next(read_table(byte_lines(source), source.name, form).rows, RawRow(source.name, {}))
