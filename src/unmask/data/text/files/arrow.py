"""Rows of parquet files and of the arrow files of a saved Hugging Face data set.

A few rows are in memory at a time. pyarrow alone reads what `save_to_disk` writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from unmask.core.records import DroppedInput
from unmask.data.text.drop_reasons import DropReason, UnreadableFile
from unmask.data.text.files.decompress import read_blocks
from unmask.data.text.files.encoding import explain_decode_error
from unmask.data.text.files.lines import RawRow, RawRows
from unmask.data.text.files.paths import Compression, FileFormat, InputFile

_BATCH = 64  # rows: few enough that a table of whole books stays small


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """The columns to read: the text is required, the others are optional."""

    text: str
    others: tuple[str, ...] = ()

    def present(self, schema: pa.Schema) -> list[str]:
        """The requested columns that a table has; a table without text is refused."""
        if self.text not in schema.names:
            have = ", ".join(schema.names)
            raise UnreadableFile(DropReason.MISSING_FIELD, f"the table has no column {self.text!r}; it has {have}")
        kind = schema.field(self.text).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise UnreadableFile(DropReason.NOT_TEXT, f"column {self.text!r} holds {kind}, not strings")
        return [self.text, *(name for name in self.others if name in schema.names)]


def arrow_rows(source: InputFile, columns: ArrowColumns, advance: Callable[[int], None]) -> RawRows:
    """The rows of a parquet or arrow file."""
    numbers = count(1)
    try:
        with _seekable(source, advance) as stream:
            batches = _parquet if source.format is FileFormat.PARQUET else _arrow
            for batch in batches(stream, columns):
                yield from _rows(batch, columns.text, source.name, numbers)
    except OSError as error:
        # pyarrow reports damage as an OSError without an error number; the system's own errors have one.
        reason = DropReason.UNREADABLE_FILE if error.errno else DropReason.DAMAGED_FILE
        raise UnreadableFile(reason, error.strerror or str(error)) from error
    except pa.ArrowException as error:
        raise UnreadableFile(
            DropReason.DAMAGED_FILE, f"this is no {source.format} file, or a damaged one ({error})"
        ) from error


def _seekable(source: InputFile, advance: Callable[[int], None]) -> BinaryIO:
    """A seekable stream: a compressed table is unpacked into a temporary file."""
    if source.compression is Compression.PLAIN:
        advance(source.size)
        return source.path.open("rb")
    stream = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 (the caller closes it)
    for block in read_blocks(source, advance):
        stream.write(block)
    stream.seek(0)
    return stream


def _parquet(stream: BinaryIO, columns: ArrowColumns) -> Iterator[pa.RecordBatch]:
    table = pq.ParquetFile(stream)
    yield from table.iter_batches(_BATCH, columns=columns.present(table.schema_arrow), use_threads=False)


def _arrow(stream: BinaryIO, columns: ArrowColumns) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(stream) as table:
        names = columns.present(table.schema)
        for batch in table:
            for start in range(0, len(batch), _BATCH):
                yield batch.select(names).slice(start, _BATCH)


def _rows(batch: pa.RecordBatch, text: str, name: str, numbers: Iterator[int]) -> RawRows:
    # As bytes first, so that one row that is not UTF-8 does not fail its whole batch.
    raw = batch.column(text).cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    others = batch.drop_columns([text]).to_pylist()
    for number, value, fields in zip(numbers, raw, others, strict=False):
        try:
            yield RawRow(f"{name}:{number}", {text: value if value is None else value.decode(), **fields})
        except UnicodeDecodeError as error:
            yield DroppedInput(DropReason.INVALID_UTF8, f"{name}:{number}", explain_decode_error(error))
