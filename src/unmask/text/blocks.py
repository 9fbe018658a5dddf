"""Bytes from disk, unpacked, as lines.

What arrives: a source. What leaves: its lines as bytes, one after another, without their line ends.
What never happens here: decoding, or holding more than one line and one block at a time.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, cast

import zstandard

from unmask.text.reasons import Reason, Unusable
from unmask.text.sources import Packing, Source

_BLOCK = 1 << 20
_PACKED_BLOCK = 1 << 16  # smaller, because packed bytes can grow a thousandfold
_GZIP = 31  # zlib's number for "expect a gzip header"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Unpack(Protocol):
    """What gzip and zstandard have in common: feed bytes, see whether the packed stream is complete."""

    @property
    def eof(self) -> bool:
        """Whether the end of the packed stream was reached."""

    @property
    def unused_data(self) -> bytes:
        """What followed that end."""

    def decompress(self, data: bytes, /) -> bytes:
        """The bytes that can be unpacked so far."""


def read_blocks(source: Source, advance: Callable[[int], None]) -> Iterator[bytes]:
    """The unpacked bytes of a source in blocks. `advance` hears of every packed byte that is read."""
    if source.is_standard_input:
        yield from _sniffed(_counted(sys.stdin.buffer, _PACKED_BLOCK, advance))
        return
    try:
        with source.path.open("rb", buffering=0) as stream:
            size = _BLOCK if source.packing is Packing.PLAIN else _PACKED_BLOCK
            yield from unpacked(_counted(cast("BinaryIO", stream), size, advance), source.packing)
    except OSError as error:
        raise Unusable(Reason.UNREADABLE_FILE, error.strerror or str(error)) from error


def _counted(stream: BinaryIO, size: int, advance: Callable[[int], None]) -> Iterator[bytes]:
    while block := stream.read(size):
        advance(len(block))
        yield block


def _sniffed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"")
    packing = Packing.PLAIN
    if first.startswith(b"\x1f\x8b"):
        packing = Packing.GZIP
    elif first.startswith(b"\x28\xb5\x2f\xfd"):
        packing = Packing.ZSTANDARD
    elif first.startswith(b"PAR1"):
        raise Unusable(Reason.UNREADABLE_FILE, "parquet cannot be read from standard input; name the file instead")
    yield from unpacked(_chained(first, blocks), packing)


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def unpacked(blocks: Iterator[bytes], packing: Packing) -> Iterator[bytes]:
    """Undo the packing. What could be unpacked before damage is handed out before the damage is reported."""
    if packing is Packing.PLAIN:
        yield from blocks
        return
    stream, begun = _unpacker(packing), False
    try:
        for block in blocks:
            rest = block
            while rest:
                begun = True
                yield stream.decompress(rest)
                rest = stream.unused_data if stream.eof else b""
                if stream.eof:
                    stream, begun = _unpacker(packing), False
                    rest = rest.lstrip(b"\0")  # tape padding between packed streams
    except (zlib.error, zstandard.ZstdError) as error:
        raise Unusable(Reason.DAMAGED_FILE, f"the packed data is corrupt ({error})") from error
    if begun:
        raise Unusable(Reason.DAMAGED_FILE, "the packed data ends in the middle; the file was cut off")


def _unpacker(packing: Packing) -> Unpack:
    if packing is Packing.GZIP:
        return zlib.decompressobj(_GZIP)
    return cast("Unpack", zstandard.ZstdDecompressor().decompressobj())


def split_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a UTF-8 stream. A line that spans many blocks is joined once, so a huge line stays linear."""
    parts: list[bytes] = []
    for block in _without_mark(blocks):
        pieces = block.split(b"\n")
        parts.append(pieces[0])
        if len(pieces) > 1:
            yield b"".join(parts)
            yield from pieces[1:-1]
            parts = [pieces[-1]]
    if any(parts):
        yield b"".join(parts)


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Take a UTF-8 byte order mark off the front and refuse a UTF-16 one."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= len(_UTF8_MARK):
            break
    if head.startswith(_UTF16_MARKS):
        raise Unusable(
            Reason.OTHER_ENCODING,
            "the file is UTF-16 (its first bytes say so); convert with: iconv -f UTF-16 -t UTF-8 FILE",
        )
    yield head.removeprefix(_UTF8_MARK)
    yield from blocks
