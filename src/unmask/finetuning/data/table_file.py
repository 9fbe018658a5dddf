"""A task file as a whole: rows with named cells, some of them texts and one a label.

What arrives: the path of a `.jsonl`, `.csv` or `.tsv` file. What leaves: a `TaskFile`.
What never happens here: passing over a bad line. A task file is small and labelled by hand, so a line that cannot be
read is refused with its number; guessing would cost a score that nobody can explain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import FORMATS_WITH_COLUMNS, TableFormat, byte_lines, find_file, read_table
from unmask.data.text.files.lines import RawRow


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The rows of a task file. Row `i` knows where it stood: `file:line`."""

    name: str
    format: TableFormat
    columns: tuple[str, ...]
    """What the first row, or the line of names above it, says; numbers from 1 where a file has no names."""
    rows: tuple[RawRow, ...]

    @property
    def source_lines(self) -> tuple[str, ...]:
        """Where each row stood."""
        return tuple(row.where for row in self.rows)


def read_task_file(path: Path, numbered: bool = False) -> TaskFile:
    """Read a task file. `numbered` says that its first line is a row already, and columns are counted from 1."""
    source, form = find_file(path, FORMATS_WITH_COLUMNS)
    table = read_table(byte_lines(source), source.name, form, numbered)
    rows = tuple(table.rows)
    if not rows:
        raise InputError(
            f"{path} holds no rows. A task file needs one row for each text and, to learn from it, its label."
        )
    return TaskFile(source.name, form, table.columns, rows)
