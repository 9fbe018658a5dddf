"""The document stream of a corpus: read, cleaned, deduplicated, grouped into shards; and samples of it.

The boundaries of shards depend on the input alone. Segmentation and tokenization happen in worker processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from unmask.core.records import Document, DroppedInput, UnitKind
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.data.corpus.shard_worker import ShardInput, text_digest
from unmask.data.text.clean import Cleaner
from unmask.data.text.dedup import ExactDeduplicator, MinHashConfig, NearDeduplicator
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.paths import Compression, expand_paths
from unmask.data.text.files.read import ReadConfig, read_documents

MAX_LISTED = 1000
"""The most dropped pieces that are listed for each reason; all are counted."""


@dataclass(frozen=True, slots=True)
class CollectConfig:
    """Settings of reading, cleaning and deduplication."""

    read_config: ReadConfig = ReadConfig()
    cleaner: Cleaner = Cleaner()
    near_duplicates: tuple[MinHashConfig, ...] = ()
    """The near-duplicate detection, if any."""

    def describe(self) -> dict[str, str]:
        """Lines for the manifest."""
        lines = {"read": repr(self.read_config), "clean": self.cleaner.describe(), "duplicates": "exact"}
        if self.near_duplicates:
            lines["near duplicates"] = repr(self.near_duplicates[0])
        if self.read_config.dialogue_files:
            lines["dialogues"] = ", ".join(sorted(path.name for path in self.read_config.dialogue_files))
        return lines


@dataclass
class DropCounts:
    """The counts of dropped pieces and removed characters."""

    dropped: Counter[str] = field(default_factory=Counter)
    listed: list[DroppedInput] = field(default_factory=list)
    num_removed_chars: int = 0

    def drop(self, piece: DroppedInput) -> None:
        """Count a dropped piece, and list it unless the list is full."""
        self.dropped[piece.reason] += 1
        if self.dropped[piece.reason] <= MAX_LISTED:
            self.listed.append(piece)


def stream_documents(
    sources: Sequence[str],
    config: CollectConfig,
    drop_counts: DropCounts,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[Document]:
    """All documents that are kept, in input order."""
    filters = [(DropReason.DUPLICATE, ExactDeduplicator())] + [
        (DropReason.NEAR_DUPLICATE, NearDeduplicator(near)) for near in config.near_duplicates
    ]
    for piece in read_documents(sources, config.read_config, progress):
        if isinstance(piece, DroppedInput):
            drop_counts.drop(piece)
            continue
        cleaned = config.cleaner(piece)
        drop_counts.num_removed_chars += cleaned.removed
        document = cleaned.result
        if isinstance(document, DroppedInput):
            drop_counts.drop(document)
            continue
        again = next((reason for reason, seen in filters if seen.check_and_add(document)), None)
        if again is None:
            yield document
        else:
            drop_counts.drop(DroppedInput(again, document.id))


def shard_inputs(
    sources: Sequence[str], config: CollectConfig, shard_characters: int, drop_counts: DropCounts
) -> Iterator[ShardInput]:
    """Documents in batches of at least this many characters (the last one may be smaller).

    Text and dialogues are never in one batch: the last documents of every shard are held out, and both kinds must be.
    """
    place = _InputPosition()
    held: list[Document] = []
    size = number = 0
    for document in stream_documents(sources, config, drop_counts, place.set):
        if held and (UnitKind.TURN in document.char_spans) != (UnitKind.TURN in held[-1].char_spans):
            yield ShardInput(number, tuple(held), text_digest(held), place.bytes)
            held, size, number = [], 0, number + 1
        held.append(document)
        size += len(document.text)
        if size >= shard_characters:
            yield ShardInput(number, tuple(held), text_digest(held), place.bytes)
            held, size, number = [], 0, number + 1
    if held:
        yield ShardInput(number, tuple(held), text_digest(held), place.bytes)


class _InputPosition:
    """The position of the reader."""

    def __init__(self) -> None:
        self.bytes = 0

    def set(self, position: int) -> None:
        self.bytes = position


SAMPLE_CHARACTERS = 30_000_000
"""The approximate size of the sample for a vocabulary or phrases, in characters."""

_COMPRESSION_RATIO = 2.7
"""The approximate ratio of a text to its compressed file."""
_BYTES_PER_CHARACTER = 2.5
"""The approximate bytes per character: one for English, three for Chinese."""


def sample_documents(
    sources: Sequence[str],
    config: CollectConfig,
    progress: Callable[[int], None] = lambda _: None,
    characters: int = SAMPLE_CHARACTERS,
) -> Iterator[Document]:
    """A sample of about this many characters, in whole documents drawn by their number."""
    share = characters / max(1.0, _expected_characters(sources))
    key = Key.of(0, "sample")
    for number, document in enumerate(stream_documents(sources, config, DropCounts(), progress)):
        if share >= 1 or uniform(key.fold_in(number).bits(DrawPurpose.PLAN, 1))[0] < share:
            yield document


def lines_of(documents: Iterator[Document]) -> Iterator[str]:
    """The lines of documents, on which a vocabulary is trained."""
    for document in documents:
        yield from document.text.split("\n")


def _expected_characters(sources: Sequence[str]) -> float:
    sizes = [
        source.size * (1.0 if source.compression is Compression.PLAIN else _COMPRESSION_RATIO)
        for source in expand_paths(sources)
    ]
    return float(np.sum(sizes)) / _BYTES_PER_CHARACTER
