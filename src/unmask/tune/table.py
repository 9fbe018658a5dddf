"""Task files as rows with named cells: JSON lines, comma- and tab-separated values, each also packed.

What arrives: the path of a `.jsonl`, `.csv` or `.tsv` file. What leaves: a `Table`.
What never happens here: passing over a bad line. A task file is small and labelled by hand, so a line that cannot be
read is refused with its number; guessing would cost a score that nobody can explain.

In `.csv`, quotes hold cells together. In `.tsv` a quote is a character like any other, as in the files of GLUE.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from unmask.errors import InputError
from unmask.records import Dropped
from unmask.text.blocks import read_blocks, split_lines
from unmask.text.plain import not_utf8
from unmask.text.reasons import Unusable
from unmask.text.rows import Row, rows_of_json
from unmask.text.sources import Format, Packing, Source


class Form(StrEnum):
    """How a task file is written, by the ending of its name."""

    JSON = ".jsonl"
    COMMAS = ".csv"
    TABS = ".tsv"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a task file. Row `i` knows where it stood: `file:line`."""

    name: str
    form: Form
    columns: tuple[str, ...]
    """What the first row, or the line of names above it, says; numbers from 1 where a file has no names."""
    rows: tuple[Row, ...]


def read_table(path: Path, numbered: bool = False) -> Table:
    """Read a task file. `numbered` says that its first line is a row already, and columns are counted from 1."""
    form, packing = _form(path)
    source = Source(path, path.name, Format.TEXT, packing)
    lines = split_lines(read_blocks(source, lambda _: None))
    try:
        rows = _json(lines, path.name) if form is Form.JSON else _cells(lines, path.name, form, numbered)
        kept = tuple(rows)
    except Unusable as trouble:
        raise InputError(f"{path} cannot be read: {trouble.detail}.") from trouble
    if not kept:
        raise InputError(f"{path} holds no rows. A task file needs one row for each text, with its label.")
    return Table(path.name, form, tuple(kept[0].fields), kept)


def _form(path: Path) -> tuple[Form, Packing]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. Give the path of a task file: .jsonl, .csv or .tsv.")
    name = path.name.lower()
    packing = next((kind for kind in (Packing.GZIP, Packing.ZSTANDARD) if name.endswith(kind)), Packing.PLAIN)
    for form in Form:
        if name.removesuffix(packing).endswith(form):
            return form, packing
    raise InputError(
        f"{path} is of no known kind. A task file is .jsonl, .csv or .tsv, each also with .gz; rename it to say so."
    )


def _json(lines: Iterator[bytes], name: str) -> Iterator[Row]:
    for row in rows_of_json(lines, name):
        if isinstance(row, Dropped):
            _refuse(row.where, f"{row.reason} ({row.detail})")
        yield row


def _cells(lines: Iterator[bytes], name: str, form: Form, numbered: bool) -> Iterator[Row]:
    """The rows of a file of cells, each under the names of the first line or under numbers."""
    text = _text(lines, name)
    if form is Form.COMMAS:
        reader = csv.reader(text, strict=True)
    else:
        reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    columns: list[str] = []
    for line, cells in _numbered(reader, name):
        if not columns:
            columns = [str(number) for number in range(1, len(cells) + 1)] if numbered else _names(cells, name)
            if not numbered:
                continue
        if len(cells) != len(columns):
            _refuse(f"{name}:{line}", f"{len(cells)} cells, where the first line has {len(columns)}")
        yield Row(f"{name}:{line}", dict(zip(columns, cells, strict=True)))


def _numbered(reader: Iterator[list[str]], name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the line where each begins: a quoted cell may go over several."""
    while True:
        line = reader.line_num + 1  # type: ignore[attr-defined]
        try:
            cells = next(reader, None)
        except csv.Error as error:
            _refuse(f"{name}:{line}", f"{error}, in the row that begins here")
        if cells is None:
            return
        if cells:
            yield line, cells


def _names(cells: list[str], name: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(set(names)) < len(names):
        twice = next(cell for cell in names if names.count(cell) > 1)
        raise InputError(
            f"{name}:1: two columns have the name {twice!r}. Rename one; or, if this line holds no names but a first "
            "row, give column numbers: --fields 1 --label 2."
        )
    return names


def _text(lines: Iterator[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.removesuffix(b"\r").decode() + "\n"
        except UnicodeDecodeError as error:
            _refuse(f"{name}:{number}", f"invalid UTF-8 ({not_utf8(error)})")


def _refuse(where: str, why: str) -> NoReturn:
    raise InputError(f"{where}: {why}. Correct the line, or remove it.")
