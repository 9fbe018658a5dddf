"""The first row of a task file, by which its kind is guessed.

What arrives: a path. What leaves: one row. What never happens here: reading on; a file may be large, and its kind is
asked for before anything else is known about it.
"""

from __future__ import annotations

from pathlib import Path

from unmask.errors import InputError
from unmask.text.rows import Row
from unmask.text.table import TABLES, Form, either, find_file, raw_lines, read_table
from unmask.text.word_columns import Columns

_WORDS = tuple(form for form in Columns if form is not Columns.TABS)
"""Files of words in columns whose ending is not that of a table."""


def first_row(path: Path) -> Row:
    """The first row of a table; a row without fields if the file holds none, or is no table."""
    source, form = find_file(path, (*TABLES, Form.JSON, *_WORDS))
    if form is Columns.TEXT:
        raise InputError(
            f"{path}: a .txt file does not say what it holds. If it has words in columns, say so (--kind tag, or "
            f'kind = "tag" in a file of tasks); other tasks need a file that ends with {either((*TABLES, Form.JSON))}.'
        )
    if not isinstance(form, Form) or form not in TABLES:
        return Row(source.name, {})
    return next(read_table(raw_lines(source), source.name, form).rows, Row(source.name, {}))
