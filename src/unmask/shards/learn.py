"""What is learned from the text before it is sharded: a vocabulary, and phrases.

What arrives: the sources and a spec. What leaves: a tokenizer or phrases, the same for the same text.
What never happens here: reading more than is needed; a large corpus is sampled by document, evenly and always alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unmask.keys import Key, Lane, uniform
from unmask.records import Document
from unmask.shards.collect import Collecting, Tally, collect
from unmask.text.sources import Packing, find_sources

SAMPLE = 30_000_000
"""Characters from which a vocabulary or phrases are learned, about."""

_PACKED = 2.7
"""How much larger text is than its compressed file, about."""
_BYTES = 2.5
"""Bytes in a character, about: one for English, three for Chinese."""


def sample(
    sources: Sequence[str],
    how: Collecting,
    progress: Callable[[int], None] = lambda _: None,
    characters: int = SAMPLE,
) -> Iterator[Document]:
    """About so many characters of the corpus, in whole documents drawn by their number."""
    share = characters / max(1.0, _expected_characters(sources))
    key = Key.of(0, "sample")
    for number, document in enumerate(collect(sources, how, Tally(), progress)):
        if share >= 1 or uniform(key.fold(number).draws(Lane.PLAN, 1))[0] < share:
            yield document


def texts(documents: Iterator[Document]) -> Iterator[str]:
    """The lines of documents: what a vocabulary is trained on."""
    for document in documents:
        yield from document.text.split("\n")


def _expected_characters(sources: Sequence[str]) -> float:
    sizes = [source.size * (1.0 if source.packing is Packing.PLAIN else _PACKED) for source in find_sources(sources)]
    return float(np.sum(sizes)) / _BYTES
