"""The text of one shard: what is handed to a worker.

What arrives: documents that are to be kept. What leaves: a batch that knows its number and the digest of its text.
What never happens here: reading. A worker imports this file, and so need not import what reads files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from unmask.core.records import Document, UnitKind


@dataclass(frozen=True, slots=True)
class ShardInput:
    """The documents of one shard."""

    number: int
    documents: tuple[Document, ...]
    digest: str
    """Digest of the text."""
    position: int
    """How far into the input, in bytes on disk, this batch reaches."""


def text_digest(documents: Sequence[Document]) -> str:
    """A digest of the texts; each is preceded by its length, so that borders count. So do turns and their roles."""
    state = hashlib.blake2b(digest_size=16)
    for document in documents:
        raw = document.text.encode("utf-8")
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
        if UnitKind.TURN in document.char_spans:
            turns = document.char_spans[UnitKind.TURN]
            state.update(turns.spans.start.astype("<i8").tobytes() + "".join(turns.labels).encode())
    return state.hexdigest()
