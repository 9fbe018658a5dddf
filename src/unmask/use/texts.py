"""Texts out of files, one a row: plain lines, JSON lines, tables with commas or tabs.

What arrives: paths or `-`, and the name of the field that holds the text. What leaves: every text, in order.
What never happens here: leaving one out. Row 7 of the file is text 7, so an empty line is an empty text, and a row that
cannot be read stops with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from unmask.errors import InputError
from unmask.text.plain import whole
from unmask.text.sources import STANDARD_INPUT, Format, Packing, Source
from unmask.text.table import TABLES, Form, decoded, find_file, raw_lines, read_table

STANDARD = Source(Path(STANDARD_INPUT), "standard input", Format.SNIFF, Packing.PLAIN)
_ADVICE = "Name the field or column that holds the text with --field."


def read_texts(given: Sequence[str], field: str) -> Iterator[str]:
    """The texts of all files, one after another."""
    for source, form in [_find(written) for written in given]:  # all are looked at before the first is read
        lines = raw_lines(source)
        if source.is_standard_input:
            lines, form = _sniffed(lines)
        yield from decoded(lines, source.name) if form is Form.LINES else _cells(lines, source.name, form, field)


def standard_lines() -> Iterator[str]:
    """The lines of standard input that are not blank."""
    return filter(str.strip, decoded(raw_lines(STANDARD), STANDARD.name))


def _find(written: str) -> tuple[Source, Form]:
    return (STANDARD, Form.LINES) if written == STANDARD_INPUT else find_file(Path(written), (Form.LINES, *TABLES))


def _sniffed(lines: Iterator[bytes]) -> tuple[Iterator[bytes], Form]:
    """Standard input has no name to tell by: it is JSON lines if it begins with a brace."""
    begin = list(islice(lines, 1))
    form = Form.JSON_LINES if begin and begin[0].lstrip().startswith(b"{") else Form.LINES
    return chain(begin, lines), form


def _cells(lines: Iterator[bytes], name: str, form: Form, field: str) -> Iterator[str]:
    """One cell of every row. JSON objects need not all have the same fields, so each is asked for it."""
    table = read_table(lines, name, form)
    if form is not Form.JSON_LINES and field not in table.columns:
        found = f"the first line names {', '.join(table.columns) or 'nothing'}"
        raise InputError(f"{name}: there is no column '{field}'; {found}. {_ADVICE}")
    for row in table.rows:
        text = row.fields.get(field)
        if not isinstance(text, str):
            found = f"the row has {', '.join(row.fields) or 'nothing'}"
            raise InputError(f"{row.where}: there is no text under '{field}'; {found}. {_ADVICE}")
        yield whole(text, row.where)
