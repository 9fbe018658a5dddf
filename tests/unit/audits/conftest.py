"""A corpus in memory with every layer of units, big enough for shares to be measured on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.vocab import Vocab

ORDINARY = np.arange(10, 2000, dtype=np.int32)
SENTINELS = np.arange(2100, 2200, dtype=np.int32)


def vocabulary() -> Vocab:
    """Two thousand tokens; words of one token below 1900 and of two below 60 have similar words."""
    single = [(token,) for token in range(10, 1900)]
    double = [(token, token + 1) for token in range(10, 60)]
    words = single + double
    near = [[i ^ 1, i ^ 2] for i in range(len(single) - 2)] + [[], []]
    near += [[len(single) + (i ^ 1)] for i in range(len(double))]
    return Vocab(2200, 2, 3, 4, 0, 1, ORDINARY, SENTINELS, SimilarWords.of(words, near))


def make_shard(rng: np.random.Generator, documents: int, base: int) -> Shard:
    """Words of 1 to 3 tokens, mostly 1, in sentences of 4 to 30 words in documents of 1 to 40 sentences.

    Every document is a conversation too, sentence by sentence.
    """
    bits, starts = [], [0]
    for _ in range(documents):
        for number in range(rng.integers(1, 41)):
            sizes = rng.choice([1, 2, 3], rng.integers(4, 31), p=[0.6, 0.2, 0.2])
            sentence = np.zeros(sizes.sum(), np.uint8)
            heads = np.cumsum(sizes) - sizes
            sentence[heads] = UnitFlag.WORD
            sentence[0] |= UnitFlag.SENTENCE | UnitFlag.TURN | UnitFlag.REPLY * (number % 2)
            for start, inside, at in (
                (UnitFlag.PHRASE, UnitFlag.IN_PHRASE, 0),
                (UnitFlag.ENTITY, UnitFlag.IN_ENTITY, 2),
            ):
                sentence[heads[at] : heads[at + 1] + sizes[at + 1]] |= np.uint8(inside)
                sentence[heads[at]] |= np.uint8(start)
            bits.append(sentence)
        starts.append(sum(map(len, bits)))
    units = np.concatenate(bits)
    ids = np.where(rng.random(len(units)) < 0.5, rng.integers(10, 60, len(units)), rng.integers(10, 2000, len(units)))
    return Shard(ids.astype(np.uint16), units, np.array(starts), base)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    rng = np.random.default_rng(3)
    first = make_shard(rng, 180, 0)
    second = make_shard(rng, 180, len(first.ids))
    counts = Counts(documents=360, tokens=second.base + len(second.ids))
    layers = (UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY, UnitKind.SENTENCE, UnitKind.TURN)
    return Corpus(Path("a folder"), Manifest("", "", layers, {}, counts, {}, {}), (first, second), vocabulary())
