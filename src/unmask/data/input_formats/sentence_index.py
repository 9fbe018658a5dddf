"""Sentence borders of a corpus, with sentences above a length limit cut at word borders.

A single word longer than the limit is cut inside.
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
    """Where to cut stretches at word starts so that no part exceeds the limit and each part is as long as possible.

    Round i cuts all stretches that are still too long once more.
    """
    while len(start):
        last = words[np.searchsorted(words, start + max_tokens, side="right") - 1]
        start = np.where(last > start, last, start + max_tokens)
        yield start
        long = end - start > max_tokens
        start, end = start[long], end[long]
