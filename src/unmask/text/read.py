"""Any pile of text, read as a stream of documents.

What arrives: files, folders, patterns or standard input, and how to read them (`Reading`).
What leaves: documents one after another, and a `Dropped` that names file and line for every piece that cannot be used.
What never happens here: stopping because of bad content, or memory that grows with the corpus.

    >>> for piece in read(["corpus/"], Reading(field="content")):
    ...     match piece:
    ...         case Document(): ...
    ...         case Dropped(reason, where): ...
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np

from unmask.records import Document, Dropped, Layer, Marks, Spans
from unmask.text.blocks import read_blocks, split_lines
from unmask.text.cut import SENTENCE_ENDS, cut_long
from unmask.text.dialogues import FIELD, conversation, rows_of_lines
from unmask.text.given import given_entities
from unmask.text.reasons import Reason, Unusable
from unmask.text.rows import Layout, Row, Rows, rows_of_either, rows_of_json, rows_of_text
from unmask.text.sources import Format, Source, find_sources, unknown_kinds

_BYTES_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """How to find a document in a file. An empty field name means that there is no such field."""

    field: str = "text"
    """The JSON field or table column that holds the text."""
    layout: Layout = Layout.BLANK_LINE
    """How documents lie in plain text."""
    id_field: str = ""
    """A field to take ids from. Without it, or where it is missing, the id is `file:line`, which is always unique."""
    entities_field: str = ""
    """A field with entities: a list of `[start, end, label]` or `{"start", "end", "label"}`, in characters."""
    longest: int = 2_000_000
    """A longer text becomes several documents, cut at a sentence end where there is one."""
    dialogues: frozenset[Path] = dataclasses.field(default=frozenset(), repr=False)
    """The files that hold conversations, resolved. Where they lie decides nothing, so it is not told."""

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise ValueError(f"the longest document must have at least 1 character, not {self.longest}")


def read(
    given: Sequence[str], reading: Reading | None = None, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Document | Dropped]:
    """Read everything behind `given`. `progress` hears how many bytes on disk are done, out of `total_bytes(given)`."""
    sources = find_sources(given)  # now, not at the first document: a wrong path must be refused at once
    return chain(_passed_over(given), _read_all(sources, reading or Reading(), progress))


def _passed_over(given: Sequence[str]) -> Iterator[Dropped]:
    """One piece for each folder with files that are not read, so that nobody waits for them in vain."""
    for folder, kinds in unknown_kinds(given):
        count = kinds.total()
        files = f"{count:,} file{'s' if count > 1 else ''} of unknown kind"
        yield Dropped(Reason.UNKNOWN_KIND, folder, f"skipped {files} ({', '.join(sorted(kinds))})")


def _read_all(
    sources: Sequence[Source], reading: Reading, progress: Callable[[int], None]
) -> Iterator[Document | Dropped]:
    meter = _Meter(progress)
    for source in sources:
        end = meter.total + source.size
        yield from _read_one(source, reading, meter)
        meter.advance(max(end - meter.total, 0))  # a file that was given up counts as done


class _Meter:
    """Adds up what was read and tells whoever draws the progress bar."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self.total = 0
        self._progress = progress

    def advance(self, size: int) -> None:
        self.total += size
        self._progress(self.total)


def _read_one(source: Source, reading: Reading, meter: _Meter) -> Iterator[Document | Dropped]:
    last = ""
    try:
        for row in _rows(source, reading, meter):
            last = row.where
            if not isinstance(row, Row):
                yield row
            elif _holds_dialogues(source, reading):
                yield conversation(row, reading.longest)
            else:
                yield from _documents(row, reading)
    except Unusable as trouble:
        kept = "; everything up to here was read" if last else ""
        yield Dropped(trouble.reason, last or source.name, f"{trouble.detail}{kept}")
        return
    if not last:
        yield Dropped(Reason.EMPTY_FILE, source.name, "there is no document in it")


def _rows(source: Source, reading: Reading, meter: _Meter) -> Rows:
    if source.format in (Format.PARQUET, Format.ARROW):
        from unmask.text.columns import Columns, rows_of_table  # pyarrow takes a while to load, and few need it

        others = tuple(name for name in (reading.id_field, reading.entities_field) if name)
        return rows_of_table(source, Columns(reading.field, others), meter.advance)
    lines = split_lines(read_blocks(source, meter.advance))
    if source.format is Format.JSON_LINES:
        return rows_of_json(lines, source.name)
    if _holds_dialogues(source, reading):
        most = reading.longest * _BYTES_A_CHARACTER
        return rows_of_lines(rows_of_text(lines, source.name, FIELD, Layout.BLANK_LINE, most))
    rows = rows_of_text if source.format is Format.TEXT else rows_of_either
    return rows(lines, source.name, reading.field, reading.layout, reading.longest * _BYTES_A_CHARACTER)


def _holds_dialogues(source: Source, reading: Reading) -> bool:
    return bool(reading.dialogues) and source.path.resolve() in reading.dialogues


def _documents(row: Row, reading: Reading) -> Iterator[Document | Dropped]:
    text = row.fields.get(reading.field)
    if not isinstance(text, str):
        yield _no_text(row, reading.field)
        return
    marks: Marks | None = None
    if reading.entities_field and row.fields.get(reading.entities_field) is not None:
        marks, bad = given_entities(row.fields[reading.entities_field], row.where, len(text))
        yield from bad
    name = str(row.fields.get(reading.id_field, row.where)) if reading.id_field else row.where
    document = Document(name, text) if marks is None else Document(name, text, _entities(marks))
    yield from _pieces(document, reading.longest)


def _no_text(row: Row, field: str) -> Dropped:
    if field not in row.fields:
        have = ", ".join(map(repr, row.fields)) or "none"
        return Dropped(Reason.MISSING_FIELD, row.where, f"there is no field {field!r}; the fields are {have}")
    found = type(row.fields[field]).__name__
    return Dropped(Reason.NOT_TEXT, row.where, f"field {field!r} holds {found}, not a string")


def _pieces(document: Document, longest: int) -> Iterator[Document]:
    """The document, or its pieces if it is too long. An entity that a cut goes through is given up."""
    if len(document.text) <= longest:
        yield document
        return
    bounds = cut_long(document.text, 0, len(document.text), longest, SENTENCE_ENDS)
    for number, (start, end) in enumerate(bounds, start=1):
        name = document.id if number == 1 else f"{document.id}#{number}"
        marks = document.marks.get(Layer.ENTITY)
        kept = MappingProxyType({}) if marks is None else _entities(_inside(marks, start, end))
        yield Document(name, document.text[start:end], kept)


def _entities(marks: Marks) -> MappingProxyType[Layer, Marks]:
    return MappingProxyType({Layer.ENTITY: marks})


def _inside(marks: Marks, start: int, end: int) -> Marks:
    keep = np.flatnonzero((marks.spans.start >= start) & (marks.spans.end <= end))
    spans = Spans(marks.spans.start[keep] - start, marks.spans.end[keep] - start)
    return Marks(spans, tuple(marks.labels[i] for i in keep.tolist()))
