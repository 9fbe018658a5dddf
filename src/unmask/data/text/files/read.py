"""Files as a stream of documents, with a `DroppedInput` for every piece that cannot be used.

Bad content never stops the stream, and memory does not grow with the corpus.

    >>> for piece in read_documents(["corpus/"], ReadConfig(field="content")):
    ...     match piece:
    ...         case Document(): ...
    ...         case DroppedInput(reason, where): ...
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np

from unmask.core.records import CharSpans, Document, DroppedInput, Spans, UnitKind
from unmask.data.text.dialogues import TURNS_FIELD, dialogue_rows, parse_dialogue
from unmask.data.text.drop_reasons import DropReason, UnreadableFile
from unmask.data.text.files.decompress import read_blocks, split_lines
from unmask.data.text.files.lines import DocumentLayout, RawRow, RawRows, jsonl_rows, stdin_rows, text_rows
from unmask.data.text.files.paths import FileFormat, InputFile, expand_paths, skipped_types
from unmask.data.text.units.given_entities import given_entities
from unmask.data.text.units.sentences import SENTENCE_ENDS, split_long

_BYTES_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """Settings of the reader. An empty field name means that there is no such field."""

    field: str = "text"
    """The JSON field or table column of the text."""
    layout: DocumentLayout = DocumentLayout.BLANK_LINE
    """The layout of documents in plain text."""
    id_field: str = ""
    """The field of document ids. By default, and where it is missing, the id is `file:line`, which is unique."""
    entities_field: str = ""
    """The field of entities: a list of `[start, end, label]` or `{"start", "end", "label"}`, in characters."""
    max_chars: int = 2_000_000
    """A longer text is split into several documents, at a sentence end where possible."""
    dialogue_files: frozenset[Path] = dataclasses.field(default=frozenset(), repr=False)
    """The files of dialogues, resolved. Their location has no effect, so it is not shown."""

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise ValueError(f"the longest document must have at least 1 character, not {self.max_chars}")


def read_documents(
    paths: Sequence[str], config: ReadConfig | None = None, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Document | DroppedInput]:
    """Read all paths. `progress` receives the number of bytes done, out of `total_bytes(paths)`."""
    sources = expand_paths(paths)  # not lazily: a wrong path is refused at once
    return chain(_skipped_folders(paths), _read_all(sources, config or ReadConfig(), progress))


def _skipped_folders(given: Sequence[str]) -> Iterator[DroppedInput]:
    """A piece for each folder with files of unknown type, which are not read."""
    for folder, kinds in skipped_types(given):
        count = kinds.total()
        files = f"{count:,} file{'s' if count > 1 else ''} of unknown kind"
        yield DroppedInput(DropReason.UNKNOWN_KIND, folder, f"skipped {files} ({', '.join(sorted(kinds))})")


def _read_all(
    sources: Sequence[InputFile], config: ReadConfig, progress: Callable[[int], None]
) -> Iterator[Document | DroppedInput]:
    meter = _Meter(progress)
    for source in sources:
        end = meter.total + source.size
        yield from _read_one(source, config, meter)
        meter.advance(max(end - meter.total, 0))  # an unreadable file counts as done


class _Meter:
    """Sums the bytes that were read, for a progress bar."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self.total = 0
        self._progress = progress

    def advance(self, size: int) -> None:
        self.total += size
        self._progress(self.total)


def _read_one(source: InputFile, config: ReadConfig, meter: _Meter) -> Iterator[Document | DroppedInput]:
    last = ""
    try:
        for row in _rows(source, config, meter):
            last = row.where
            if not isinstance(row, RawRow):
                yield row
            elif _is_dialogue_file(source, config):
                yield parse_dialogue(row, config.max_chars)
            else:
                yield from _documents(row, config)
    except UnreadableFile as trouble:
        kept = "; everything up to here was read" if last else ""
        yield DroppedInput(trouble.reason, last or source.name, f"{trouble.detail}{kept}")
        return
    if not last:
        yield DroppedInput(DropReason.EMPTY_FILE, source.name, "there is no document in it")


def _rows(source: InputFile, config: ReadConfig, meter: _Meter) -> RawRows:
    if source.format in (FileFormat.PARQUET, FileFormat.ARROW):
        from unmask.data.text.files.arrow import (  # pyarrow takes a while to load, and few need it
            ArrowColumns,
            arrow_rows,
        )

        others = tuple(name for name in (config.id_field, config.entities_field) if name)
        return arrow_rows(source, ArrowColumns(config.field, others), meter.advance)
    lines = split_lines(read_blocks(source, meter.advance))
    if source.format is FileFormat.JSON_LINES:
        return jsonl_rows(lines, source.name)
    if _is_dialogue_file(source, config):
        most = config.max_chars * _BYTES_A_CHARACTER
        return dialogue_rows(text_rows(lines, source.name, TURNS_FIELD, DocumentLayout.BLANK_LINE, most))
    rows = text_rows if source.format is FileFormat.TEXT else stdin_rows
    return rows(lines, source.name, config.field, config.layout, config.max_chars * _BYTES_A_CHARACTER)


def _is_dialogue_file(source: InputFile, config: ReadConfig) -> bool:
    return bool(config.dialogue_files) and source.path.resolve() in config.dialogue_files


def _documents(row: RawRow, config: ReadConfig) -> Iterator[Document | DroppedInput]:
    text = row.fields.get(config.field)
    if not isinstance(text, str):
        yield _missing_text(row, config.field)
        return
    marks: CharSpans | None = None
    if config.entities_field and row.fields.get(config.entities_field) is not None:
        marks, bad = given_entities(row.fields[config.entities_field], row.where, len(text))
        yield from bad
    name = str(row.fields.get(config.id_field, row.where)) if config.id_field else row.where
    document = Document(name, text) if marks is None else Document(name, text, _entities(marks))
    yield from _pieces(document, config.max_chars)


def _missing_text(row: RawRow, field: str) -> DroppedInput:
    if field not in row.fields:
        have = ", ".join(map(repr, row.fields)) or "none"
        return DroppedInput(DropReason.MISSING_FIELD, row.where, f"there is no field {field!r}; the fields are {have}")
    found = type(row.fields[field]).__name__
    return DroppedInput(DropReason.NOT_TEXT, row.where, f"field {field!r} holds {found}, not a string")


def _pieces(document: Document, max_chars: int) -> Iterator[Document]:
    """The document, or its pieces if it is too long. An entity across a cut is dropped."""
    if len(document.text) <= max_chars:
        yield document
        return
    bounds = split_long(document.text, 0, len(document.text), max_chars, SENTENCE_ENDS)
    for number, (start, end) in enumerate(bounds, start=1):
        name = document.id if number == 1 else f"{document.id}#{number}"
        marks = document.char_spans.get(UnitKind.ENTITY)
        kept = MappingProxyType({}) if marks is None else _entities(_spans_inside(marks, start, end))
        yield Document(name, document.text[start:end], kept)


def _entities(marks: CharSpans) -> MappingProxyType[UnitKind, CharSpans]:
    return MappingProxyType({UnitKind.ENTITY: marks})


def _spans_inside(marks: CharSpans, start: int, end: int) -> CharSpans:
    keep = np.flatnonzero((marks.spans.start >= start) & (marks.spans.end <= end))
    spans = Spans(marks.spans.start[keep] - start, marks.spans.end[keep] - start)
    return CharSpans(spans, tuple(marks.labels[i] for i in keep.tolist()))
