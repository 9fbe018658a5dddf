"""Rows of plain text and JSON lines files.

A bad line becomes a `DroppedInput` and costs its own document only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

from unmask.core.records import DroppedInput
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.encoding import explain_decode_error


class DocumentLayout(StrEnum):
    """The layout of documents in a plain text file."""

    BLANK_LINE = "blank line"
    """Documents are separated by blank lines."""
    LINE = "line"
    """Every line is a document."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One raw document: its place and its fields by name."""

    where: str
    fields: Mapping[str, object]


RawRows: TypeAlias = Iterator[RawRow | DroppedInput]


def text_rows(lines: Iterator[bytes], name: str, field: str, layout: DocumentLayout, max_bytes: int) -> RawRows:
    """Documents of a plain text file. One of more than `most` bytes is split at a line end."""
    pieces = _paragraphs(lines, max_bytes) if layout is DocumentLayout.BLANK_LINE else _nonblank_lines(lines)
    for number, raw in pieces:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            yield _invalid(name, number + raw.count(b"\n", 0, error.start), error)
            continue
        yield RawRow(f"{name}:{number}", {field: text})


def _nonblank_lines(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if line and not line.isspace():
            yield number, line.removesuffix(b"\r")


def _paragraphs(lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[int, bytes]]:
    held: list[bytes] = []
    size = first = 0
    for number, line in enumerate(chain(lines, (b"",)), start=1):
        blank = not line or line.isspace()
        if held and (blank or size > max_bytes):
            yield first, b"\n".join(held)
            held, size = [], 0
        if not blank:
            first = first if held else number
            held.append(line.removesuffix(b"\r"))
            size += len(line)
    if held:
        yield first, b"\n".join(held)


def jsonl_rows(lines: Iterator[bytes], name: str) -> RawRows:
    """One JSON object a line; blank lines are skipped."""
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        try:
            fields = json.loads(line.decode())
        except UnicodeDecodeError as error:
            yield _invalid(name, number, error)
            continue
        except (ValueError, RecursionError) as error:
            yield DroppedInput(DropReason.BROKEN_JSON, f"{name}:{number}", str(error))
            continue
        if isinstance(fields, dict):
            yield RawRow(f"{name}:{number}", fields)
        else:
            yield DroppedInput(
                DropReason.BROKEN_JSON, f"{name}:{number}", "the line holds a value, not an object {...}"
            )


def stdin_rows(lines: Iterator[bytes], name: str, field: str, layout: DocumentLayout, max_bytes: int) -> RawRows:
    """Rows of standard input, which is JSON lines if its first character is an opening brace."""
    first = next(lines, b"")
    both = chain((first,), lines)
    if first.lstrip().startswith(b"{"):
        yield from jsonl_rows(both, name)
    else:
        yield from text_rows(both, name, field, layout, max_bytes)


def _invalid(name: str, line: int, error: UnicodeDecodeError) -> DroppedInput:
    return DroppedInput(DropReason.INVALID_UTF8, f"{name}:{line}", explain_decode_error(error))
