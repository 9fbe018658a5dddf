"""Text, JSON lines, CSV, TSV and JSON files of fine-tuning tasks, also compressed.

A row that cannot be read is refused with its place, `file:line`: the number of rows is part of a task. In `.csv`,
quotes hold cells together; in `.tsv` a quote is a character like any other, as in the files of GLUE.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from unmask.core.errors import InputError
from unmask.core.records import DroppedInput
from unmask.data.text.drop_reasons import DropReason, UnreadableFile
from unmask.data.text.files.decompress import read_blocks, split_lines
from unmask.data.text.files.encoding import explain_decode_error
from unmask.data.text.files.lines import RawRow, jsonl_rows
from unmask.data.text.files.paths import FileFormat, InputFile, strip_compression_suffix

if TYPE_CHECKING:
    from _csv import Reader as CsvReader


class TableFormat(StrEnum):
    """The format of a file, by the ending of its name."""

    LINES = ".txt"
    """No table: every line is a text."""
    JSON_LINES = ".jsonl"
    COMMAS = ".csv"
    TABS = ".tsv"
    JSON = ".json"
    """No table: the whole file is one JSON value."""


FORMATS_WITH_COLUMNS = (TableFormat.JSON_LINES, TableFormat.COMMAS, TableFormat.TABS)
"""The formats with columns."""
_Cells: TypeAlias = Iterator[tuple[int, list[str]]]
"""The cells of each row, with the number of its first line."""
Ending = TypeVar("Ending", bound=StrEnum)
"""A format that is known by the ending of a file name; readers may define their own."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """The column names of a file, and its rows, which can be read once."""

    columns: tuple[str, ...]
    """The names in the first line, or numbers from 1 where it has none; the fields of the first JSON object."""
    rows: Iterator[RawRow]


def find_file(path: Path, formats: Sequence[Ending]) -> tuple[InputFile, Ending]:
    """The file and its format; a missing file and other formats are refused."""
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the path of a file that ends with {any_of_text(formats)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. Check the name, and the folder that it should lie in.")
    name, packing = strip_compression_suffix(path.name)
    for form in formats:
        if name.endswith(form):
            return InputFile(path, str(path), FileFormat.TEXT, packing), form
    raise InputError(
        f"{path} is not of a kind that is read here: {any_of_text(formats)}, each also with .gz or .zst. Rename the "
        "file to say what it holds."
    )


def byte_lines(source: InputFile) -> Iterator[bytes]:
    """The decompressed lines of a file, as bytes."""
    try:
        yield from split_lines(read_blocks(source, lambda _: None))
    except UnreadableFile as trouble:
        raise InputError(f"{source.name} cannot be read: {trouble.detail}.") from trouble


def decode_lines(lines: Iterator[bytes], name: str) -> Iterator[str]:
    """The same lines as text."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            _refuse(f"{name}:{number}", f"{DropReason.INVALID_UTF8} ({explain_decode_error(error)})")


def read_table(
    lines: Iterator[bytes], name: str, table_format: TableFormat, numbered_columns: bool = False
) -> TableRows:
    """The table in the lines. With `numbered`, the first line is a row and columns are numbered from 1."""
    if table_format is TableFormat.JSON_LINES:
        objects = _objects(lines, name)
        begin = next(objects, None)
        return TableRows(tuple(begin.fields), chain((begin,), objects)) if begin else TableRows((), objects)
    rows = _cells(lines, name, table_format)
    line, cells = next(rows, (1, []))
    if numbered_columns and cells:
        columns = tuple(str(number) for number in range(1, len(cells) + 1))
        return TableRows(columns, _raw_rows(columns, chain([(line, cells)], rows), name))
    columns = _names(cells, f"{name}:{line}")
    return TableRows(columns, _raw_rows(columns, rows, name))


def _objects(lines: Iterator[bytes], name: str) -> Iterator[RawRow]:
    for row in jsonl_rows(lines, name):
        if isinstance(row, DroppedInput):
            _refuse(row.where, f"{row.reason} ({row.detail})")
        yield row


def _cells(lines: Iterator[bytes], name: str, table_format: TableFormat) -> _Cells:
    """Rows that are not blank. A quoted cell may span several lines."""
    reader = _reader((f"{text}\n" for text in decode_lines(lines, name)), table_format)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            _refuse(f"{name}:{line}", f"{error}, in the row that begins here")
        if cells is None:
            return
        if cells:
            yield line, cells


def _reader(lines: Iterator[str], table_format: TableFormat) -> CsvReader:
    if table_format is TableFormat.COMMAS:
        return csv.reader(lines, strict=True)
    return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _names(cells: Sequence[str], where: str) -> tuple[str, ...]:
    """The cells of the first line as names. Columns without a name are allowed, as some programs write them."""
    names = tuple(cell.strip() for cell in cells)
    twice = next((name for name in names if name and names.count(name) > 1), "")
    if twice:
        raise InputError(
            f"{where}: two columns have the name {twice!r}. Rename one; or, if this line is a first row already, put a "
            "line of names above it."
        )
    return names


def _raw_rows(columns: Sequence[str], rows: _Cells, name: str) -> Iterator[RawRow]:
    for line, cells in rows:
        if len(cells) != len(columns):
            _refuse(f"{name}:{line}", f"{len(cells)} cells, where the first line has {len(columns)}")
        yield RawRow(f"{name}:{line}", dict(zip(columns, cells, strict=True)))


def any_of_text(formats: Sequence[StrEnum]) -> str:
    """Several endings in words."""
    return f"{', '.join(formats[:-1])} or {formats[-1]}"


def _refuse(where: str, why: str) -> NoReturn:
    raise InputError(f"{where}: {why}. Correct the line, or remove it.")


def read_nested(lines: Iterator[bytes], name: str) -> object:
    """The value of a JSON file; broken JSON and other encodings are refused with their line."""
    text = "\n".join(decode_lines(lines, name))
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}: {DropReason.BROKEN_JSON} ({error.msg}). {_advice(error)}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise InputError(f"{name}: {DropReason.BROKEN_JSON} ({error}). Correct the file.") from error
    return value


def _advice(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "A second value begins here; if the file holds one object a line, rename it to .jsonl."
    return "Correct the file."
