"""The sentences of a corpus as a planner sees them: where they begin, and how to cut one that is too long.

What arrives: an opened corpus. What leaves: sentence borders, document by document, with no sentence above a limit.
What never happens here: cutting inside a word, unless a single word is longer than the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.core.records import Ints, UnitFlag
from unmask.data.corpus.corpus import Corpus, Shard


@dataclass(frozen=True, slots=True)
class SentenceIndex:
    """The sentence borders of one shard as addresses, and the sentence with which each document begins."""

    offsets: Ints
    """Where each sentence begins; one more for the end."""
    document_offsets: Ints
    """The number of each document's first sentence; one more for the end."""


def sentence_index(corpus: Corpus, max_tokens: int) -> Iterator[SentenceIndex]:
    """The sentences of each shard in turn, none longer than `limit` tokens."""
    for shard in corpus.shards:
        border = _split_long(shard, max_tokens)
        yield SentenceIndex(border + shard.base, np.searchsorted(border, shard.documents))


def _split_long(shard: Shard, limit: int) -> Ints:
    border = shard.sentences.astype(np.int64)
    long = np.flatnonzero(np.diff(border) > limit)
    if not len(long):
        return border
    words = np.flatnonzero(np.asarray(shard.units) & UnitFlag.WORD)
    return np.sort(np.concatenate([border, *split_at_words(words, border[long], border[long + 1], limit)]))


def split_at_words(words: Ints, start: Ints, end: Ints, max_tokens: int) -> Iterator[Ints]:
    """Where to cut stretches so that no part exceeds the limit, each part as long as it can be, where words begin.

    First the first cuts of all that are too long, then the second ones of those that still are, and so on.
    """
    while len(start):
        last = words[np.searchsorted(words, start + max_tokens, side="right") - 1]
        start = np.where(last > start, last, start + max_tokens)
        yield start
        long = end - start > max_tokens
        start, end = start[long], end[long]
