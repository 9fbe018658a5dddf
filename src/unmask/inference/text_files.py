"""Input texts for inference, one per row: plain lines, JSON lines, CSV or TSV, or standard input.

No row is skipped: an empty line is an empty text, and a row that cannot be read is an error with its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import (
    FORMATS_WITH_COLUMNS,
    TableFormat,
    byte_lines,
    decode_lines,
    find_file,
    read_table,
)
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.files.paths import STANDARD_INPUT, Compression, FileFormat, InputFile

STANDARD_SOURCE = InputFile(Path(STANDARD_INPUT), "standard input", FileFormat.SNIFF, Compression.PLAIN)
_ADVICE = "Name the field or column that holds the text with --field."


def read_texts(given: Sequence[str], field: str) -> Iterator[str]:
    """The texts of all files, one after another."""
    for source, form in [_find(written) for written in given]:  # all files are opened before the first is read
        lines = byte_lines(source)
        if source.is_standard_input:
            lines, form = _sniff_format(lines)
        yield from (
            decode_lines(lines, source.name) if form is TableFormat.LINES else _cells(lines, source.name, form, field)
        )


def read_stdin_lines() -> Iterator[str]:
    """The lines of standard input that are not blank."""
    return filter(str.strip, decode_lines(byte_lines(STANDARD_SOURCE), STANDARD_SOURCE.name))


def _find(written: str) -> tuple[InputFile, TableFormat]:
    return (
        (STANDARD_SOURCE, TableFormat.LINES)
        if written == STANDARD_INPUT
        else find_file(Path(written), (TableFormat.LINES, *FORMATS_WITH_COLUMNS))
    )


def _sniff_format(lines: Iterator[bytes]) -> tuple[Iterator[bytes], TableFormat]:
    """The format of standard input: JSON lines if it begins with a brace."""
    begin = list(islice(lines, 1))
    form = TableFormat.JSON_LINES if begin and begin[0].lstrip().startswith(b"{") else TableFormat.LINES
    return chain(begin, lines), form


def _cells(lines: Iterator[bytes], name: str, form: TableFormat, field: str) -> Iterator[str]:
    """One cell of every row. JSON objects need not all have the same fields."""
    table = read_table(lines, name, form)
    if form is not TableFormat.JSON_LINES and field not in table.columns:
        found = f"the first line names {', '.join(table.columns) or 'nothing'}"
        raise InputError(f"{name}: there is no column '{field}'; {found}. {_ADVICE}")
    for row in table.rows:
        text = row.fields.get(field)
        if not isinstance(text, str):
            found = f"the row has {', '.join(row.fields) or 'nothing'}"
            raise InputError(f"{row.where}: there is no text under '{field}'; {found}. {_ADVICE}")
        yield check_surrogates(text, row.where)
