"""Files as decompressed lines of bytes, one line and one block in memory at a time."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, cast

import zstandard

from unmask.data.text.drop_reasons import DropReason, UnreadableFile
from unmask.data.text.files.paths import Compression, InputFile

_BLOCK = 1 << 20
_COMPRESSED_BLOCK = 1 << 16  # smaller, because compressed bytes can grow a thousandfold
_GZIP = 31  # zlib's number for "expect a gzip header"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class Decompressor(Protocol):
    """The common interface of gzip and zstandard decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed stream was reached."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after that end."""

    def decompress(self, data: bytes, /) -> bytes:
        """The bytes that can be decompressed so far."""


def read_blocks(source: InputFile, advance: Callable[[int], None]) -> Iterator[bytes]:
    """The decompressed blocks of a file. `advance` receives the size of every compressed block."""
    if source.is_standard_input:
        yield from _sniff_compression(_count_bytes(sys.stdin.buffer, _COMPRESSED_BLOCK, advance))
        return
    try:
        with source.path.open("rb", buffering=0) as stream:
            size = _BLOCK if source.compression is Compression.PLAIN else _COMPRESSED_BLOCK
            yield from decompress(_count_bytes(cast("BinaryIO", stream), size, advance), source.compression)
    except OSError as error:
        raise UnreadableFile(DropReason.UNREADABLE_FILE, error.strerror or str(error)) from error


def _count_bytes(stream: BinaryIO, size: int, advance: Callable[[int], None]) -> Iterator[bytes]:
    while block := stream.read(size):
        advance(len(block))
        yield block


def _sniff_compression(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"")
    packing = Compression.PLAIN
    if first.startswith(b"\x1f\x8b"):
        packing = Compression.GZIP
    elif first.startswith(b"\x28\xb5\x2f\xfd"):
        packing = Compression.ZSTANDARD
    elif first.startswith(b"PAR1"):
        raise UnreadableFile(
            DropReason.UNREADABLE_FILE, "parquet cannot be read from standard input; name the file instead"
        )
    yield from decompress(_chain(first, blocks), packing)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def decompress(blocks: Iterator[bytes], compression: Compression) -> Iterator[bytes]:
    """Decompress blocks. What precedes damaged data is returned before the error is raised."""
    if compression is Compression.PLAIN:
        yield from blocks
        return
    stream, begun = _new_decompressor(compression), False
    try:
        for block in blocks:
            rest = block
            while rest:
                begun = True
                yield stream.decompress(rest)
                rest = stream.unused_data if stream.eof else b""
                if stream.eof:
                    stream, begun = _new_decompressor(compression), False
                    rest = rest.lstrip(b"\0")  # padding between compressed streams
    except (zlib.error, zstandard.ZstdError) as error:
        raise UnreadableFile(DropReason.DAMAGED_FILE, f"the compressed data is corrupt ({error})") from error
    if begun:
        raise UnreadableFile(DropReason.DAMAGED_FILE, "the compressed data ends early; the file is truncated")


def _new_decompressor(compression: Compression) -> Decompressor:
    if compression is Compression.GZIP:
        return zlib.decompressobj(_GZIP)
    return cast("Decompressor", zstandard.ZstdDecompressor().decompressobj())


def split_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a UTF-8 stream. A line across many blocks is joined once, in linear time."""
    parts: list[bytes] = []
    for block in _strip_bom(blocks):
        pieces = block.split(b"\n")
        parts.append(pieces[0])
        if len(pieces) > 1:
            yield b"".join(parts)
            yield from pieces[1:-1]
            parts = [pieces[-1]]
    if any(parts):
        yield b"".join(parts)


def _strip_bom(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Remove a UTF-8 byte order mark and refuse a UTF-16 one."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= len(_UTF8_BOM):
            break
    if head.startswith(_UTF16_BOMS):
        raise UnreadableFile(
            DropReason.OTHER_ENCODING,
            "the file is UTF-16 (its first bytes say so); convert with: iconv -f UTF-16 -t UTF-8 FILE",
        )
    yield head.removeprefix(_UTF8_BOM)
    yield from blocks
