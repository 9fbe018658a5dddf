"""What is learned from the text before it is sharded: a vocabulary, and phrases.

What arrives: the sources and a spec. What leaves: a tokenizer or phrases, the same for the same text.
What never happens here: reading more than is needed; a large corpus is sampled by document, evenly and always alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unmask.core.records import Document
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.data.corpus.document_stream import CollectConfig, DropCounts, stream_documents
from unmask.data.text.files.paths import Compression, expand_paths

SAMPLE_CHARACTERS = 30_000_000
"""Characters from which a vocabulary or phrases are learned, about."""

_COMPRESSION_RATIO = 2.7
"""How much larger text is than its compressed file, about."""
_BYTES_PER_CHARACTER = 2.5
"""Bytes in a character, about: one for English, three for Chinese."""


def sample_documents(
    sources: Sequence[str],
    config: CollectConfig,
    progress: Callable[[int], None] = lambda _: None,
    characters: int = SAMPLE_CHARACTERS,
) -> Iterator[Document]:
    """About so many characters of the corpus, in whole documents drawn by their number."""
    share = characters / max(1.0, _expected_characters(sources))
    key = Key.of(0, "sample")
    for number, document in enumerate(stream_documents(sources, config, DropCounts(), progress)):
        if share >= 1 or uniform(key.fold_in(number).bits(DrawPurpose.PLAN, 1))[0] < share:
            yield document


def lines_of(documents: Iterator[Document]) -> Iterator[str]:
    """The lines of documents: what a vocabulary is trained on."""
    for document in documents:
        yield from document.text.split("\n")


def _expected_characters(sources: Sequence[str]) -> float:
    sizes = [
        source.size * (1.0 if source.compression is Compression.PLAIN else _COMPRESSION_RATIO)
        for source in expand_paths(sources)
    ]
    return float(np.sum(sizes)) / _BYTES_PER_CHARACTER
