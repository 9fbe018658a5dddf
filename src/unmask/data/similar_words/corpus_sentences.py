"""Running text: the corpus read from front to back as sentences of words.

What arrives: an open corpus. What leaves: stretches of whole sentences, with the words that were found when the corpus
was prepared. What never happens here: segmenting, or holding more than one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unmask.core.errors import CorpusError
from unmask.core.records import Ids, Ints, UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard

BLOCK_TOKENS = 1 << 18
"""Tokens in a stretch, about: it ends where a sentence ends."""


@dataclass(frozen=True, slots=True)
class SentenceBlock:
    """Whole sentences, one after another."""

    ids: Ids
    word_starts: Ints
    """Where each word begins in `ids`; words fill it."""
    sentence_starts: Ints
    """The number of the word that each sentence begins with; one more for the end."""


def sentence_blocks(corpus: Corpus, size: int = BLOCK_TOKENS) -> Iterator[SentenceBlock]:
    """The whole corpus, stretch by stretch."""
    if UnitKind.WORD not in corpus.layers:
        raise CorpusError(
            f"Word vectors need words, but {corpus.folder} was prepared without them. "
            "Prepare the corpus for a member that masks whole words, e.g. --for macbert."
        )
    for shard in corpus.shards:
        yield from _of_shard(shard, size)


def _of_shard(shard: Shard, size: int) -> Iterator[SentenceBlock]:
    borders = shard.sentences.astype(np.int64)
    wanted = np.arange(0, borders[-1], size)
    ends = np.unique(np.append(borders[np.searchsorted(borders, wanted)], borders[-1]))
    for start, end in pairwise(ends.tolist()):
        bits = np.asarray(shard.units[start:end])
        words = np.flatnonzero(bits & UnitFlag.WORD)
        sentences = np.searchsorted(words, np.flatnonzero(bits & UnitFlag.SENTENCE))
        yield SentenceBlock(np.asarray(shard.ids[start:end]).astype(np.int32), words, np.append(sentences, len(words)))
