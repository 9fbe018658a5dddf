"""Texts out of files, one a row: plain lines, JSON lines, tables with commas or tabs.

What arrives: paths or `-`, and the name of the field that holds the text. What leaves: every text, in order.
What never happens here: leaving one out. Row 7 of the file is text 7, so an empty line is an empty text, and a row that
cannot be read stops with its place.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.errors import InputError
from unmask.records import Dropped
from unmask.text.blocks import read_blocks, split_lines
from unmask.text.plain import not_utf8
from unmask.text.reasons import Unusable
from unmask.text.rows import rows_of_json
from unmask.text.sources import STANDARD_INPUT, Format, Packing, Source

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

STANDARD = Source(Path(STANDARD_INPUT), "standard input", Format.SNIFF, Packing.PLAIN)


class Kind(StrEnum):
    """How a file holds its texts."""

    LINES = ".txt"
    JSON_LINES = ".jsonl"
    COMMAS = ".csv"
    TABS = ".tsv"
    SNIFF = "-"
    """Standard input has no name to tell by: lines, or JSON lines if it begins with a brace."""


ENDINGS = (Kind.LINES, Kind.JSON_LINES, Kind.COMMAS, Kind.TABS)


def read_texts(given: Sequence[str], field: str) -> Iterator[str]:
    """The texts of all files, one after another."""
    for kind, source in [_source(written) for written in given]:  # all are looked at before the first is read
        yield from _read(kind, source, field)


def standard_lines() -> Iterator[str]:
    """The lines of standard input that are not blank."""
    return filter(str.strip, _read(Kind.LINES, STANDARD, ""))


def whole(text: str, where: str) -> str:
    """The same text, unless it is none: JSON and shells can hold half of a character that takes two code units."""
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(f"{where}: the text holds a character that is not whole (half of a surrogate pair). Mend it.")
    return text


def _source(written: str) -> tuple[Kind, Source]:
    if written == STANDARD_INPUT:
        return Kind.SNIFF, STANDARD
    path, lower = Path(written), written.lower()
    packing = next((p for p in (Packing.GZIP, Packing.ZSTANDARD) if lower.endswith(p)), Packing.PLAIN)
    kind = next((kind for kind in ENDINGS if lower.removesuffix(packing).endswith(kind)), None)
    if not path.is_file():
        raise InputError(f"{written}: there is no such file.")
    if kind is None:
        raise InputError(
            f"{written}: is not of a known kind. Known are {', '.join(ENDINGS)}, each also with .gz or .zst; rename "
            "the file to say what it holds."
        )
    return kind, Source(path, written, Format.TEXT, packing)


def _read(kind: Kind, source: Source, field: str) -> Iterator[str]:
    try:
        yield from _texts(kind, source, field)
    except Unusable as trouble:
        raise InputError(f"{source.name} cannot be read: {trouble.detail}.") from trouble


def _texts(kind: Kind, source: Source, field: str) -> Iterator[str]:
    lines = split_lines(read_blocks(source, lambda _: None))
    if kind is Kind.SNIFF:
        begin = list(islice(lines, 1))
        kind = Kind.JSON_LINES if begin and begin[0].lstrip().startswith(b"{") else Kind.LINES
        lines = chain(begin, lines)
    if kind is Kind.LINES:
        return _decoded(lines, source.name)
    if kind is Kind.JSON_LINES:
        return _from_json(lines, source.name, field)
    return _from_table(lines, source.name, field, kind)


def _decoded(lines: Iterator[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}:{number}: the text must be UTF-8, but {not_utf8(error)}.") from error


def _from_json(lines: Iterator[bytes], name: str, field: str) -> Iterator[str]:
    for row in rows_of_json(lines, name):
        if isinstance(row, Dropped):
            raise InputError(f"{row.where}: this row cannot be read ({row.detail}). Mend or remove it.")
        text = row.fields.get(field)
        if not isinstance(text, str):
            raise InputError(
                f"{row.where}: there is no text under '{field}'; the row has {', '.join(row.fields)}. Name the field "
                "that holds the text with --field."
            )
        yield whole(text, row.where)


def _from_table(lines: Iterator[bytes], name: str, field: str, kind: Kind) -> Iterator[str]:
    """The column that has this name in the first line. A blank line is no row of a table."""
    table = _cells((f"{text}\n" for text in _decoded(lines, name)), kind)
    try:
        head = next(table, [])
        place = _column(head, field, name)
        for row in filter(None, table):
            if len(row) != len(head):
                found = f"{len(row)} columns where the first line has {len(head)}"
                raise InputError(f"{name}:{table.line_num}: found {found}. Mend or remove this row.")
            yield row[place]
    except csv.Error as error:
        raise InputError(f"{name}:{table.line_num}: the table is broken here ({error}). Mend this row.") from error


def _cells(lines: Iterator[str], kind: Kind) -> CsvReader:
    """Quotes hold cells together where commas divide; where tabs divide they are text, as such files have them."""
    if kind is Kind.COMMAS:
        return csv.reader(lines, strict=True)
    return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _column(head: Sequence[str], field: str, name: str) -> int:
    if field in head:
        return head.index(field)
    raise InputError(
        f"{name}: there is no column '{field}'; the first line names {', '.join(head) or 'nothing'}. Name the column "
        "that holds the text with --field."
    )
