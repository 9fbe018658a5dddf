"""The sentences of a corpus as a planner sees them: where they begin, and how to cut one that is too long.

What arrives: an opened corpus. What leaves: sentence borders, document by document, with no sentence above a limit.
What never happens here: cutting inside a word, unless a single word is longer than the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.records import Flag, Ints
from unmask.shards.corpus import Corpus, Shard


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentence borders of one shard as addresses, and the sentence with which each document begins."""

    border: Ints
    """Where each sentence begins; one more for the end."""
    document: Ints
    """The number of each document's first sentence; one more for the end."""


def sentences(corpus: Corpus, limit: int) -> Iterator[Sentences]:
    """The sentences of each shard in turn, none longer than `limit` tokens."""
    for shard in corpus.shards:
        border = _cut(shard, limit)
        yield Sentences(border + shard.base, np.searchsorted(border, shard.documents))


def _cut(shard: Shard, limit: int) -> Ints:
    border = shard.sentences.astype(np.int64)
    long = np.flatnonzero(np.diff(border) > limit)
    extra = [word_cuts(shard, int(border[i]), int(border[i + 1]), limit) for i in long]
    return np.sort(np.concatenate([border, *extra])) if extra else border


def word_cuts(shard: Shard, start: int, end: int, limit: int) -> Ints:
    """Where to cut a stretch so that no part exceeds the limit: each part as long as it can be, on word borders."""
    words = start + np.flatnonzero(np.asarray(shard.units[start:end]) & Flag.WORD)
    cuts = []
    while end - start > limit:
        last = words[np.searchsorted(words, start + limit, side="right") - 1]
        start = int(last) if last > start else start + limit
        cuts.append(start)
    return np.array(cuts, dtype=np.int64)
