"""Word vectors: words that stand in similar company come to lie close together.

What arrives: running text and its vocabulary. What leaves: one vector for each spelling.
What never happens here: reading the corpus into memory, or a result that changes from run to run with one thread.

Skip-gram says the neighbours from the word, CBOW the word from its neighbours (word2vec, Mikolov et al., 2013).
fastText (Bojanowski et al., 2017) is skip-gram whose word vectors are sums over pieces of the word: rare words gain.
"""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from unmask.core.records import Floats
from unmask.data.corpus.corpus import Corpus
from unmask.data.similar_words.config import NeighbourSource, VectorConfig
from unmask.data.similar_words.word_counts import WordVocabulary, sentence_blocks

ProgressCallback = Callable[[int, int], None]
"""Hears of the epoch (from 1) and of the words read so far, over all epochs."""

_PIECES = {"min_n": 2, "max_n": 5, "bucket": 1 << 18}
"""fastText's pieces of words, borders counted as characters: short ones, for Chinese words are short. A smaller table
of pieces than the usual 2,000,000 keeps memory at a hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Spellings, the most frequent first, and the vector of each."""

    spellings: tuple[str, ...]
    matrix: Floats


NO_VECTORS = WordVectors((), np.zeros((0, 0), np.float32))


def train_vectors(
    corpus: Corpus, vocabulary: WordVocabulary, config: VectorConfig, threads: int, progress: ProgressCallback
) -> WordVectors:
    """Train vectors. With one thread the same corpus and seed give the same bytes; more threads race each other."""
    with _quiet("gensim"):
        model = _model(config, threads)
        model.build_vocab_from_freq(vocabulary.frequencies(), corpus_count=vocabulary.num_sentences)
        sentences = SpelledSentences(corpus, vocabulary, progress)
        model.train(sentences, total_examples=vocabulary.num_sentences, epochs=config.epochs)
    return WordVectors(tuple(model.wv.index_to_key), np.asarray(model.wv.vectors, dtype=np.float32))


def _model(config: VectorConfig, threads: int) -> Any:  # noqa: ANN401 - gensim has no types
    from gensim.models import FastText, Word2Vec

    common = {
        "vector_size": config.dim,
        "window": config.window,
        "min_count": 1,  # the vocabulary is counted already
        "workers": threads,
        "seed": config.seed % (1 << 32),
        "hashfxn": _stable_hash,
    }
    if config.method is NeighbourSource.FASTTEXT:
        return FastText(sg=1, **common, **_PIECES)
    return Word2Vec(sg=int(config.method is NeighbourSource.SKIP_GRAM), **common)


def _stable_hash(text: str) -> int:
    """Python's own hash of a string differs between processes."""
    return zlib.crc32(text.encode())


class SpelledSentences:
    """The sentences as lists of spellings. Every iteration reads the corpus once more: that is an epoch."""

    def __init__(self, corpus: Corpus, vocabulary: WordVocabulary, progress: ProgressCallback) -> None:
        self.corpus, self.words, self.progress = corpus, vocabulary.words, progress
        # A word that is not in the vocabulary is UNKNOWN, the last entry here: an empty string, which is passed over.
        self.spellings = np.array([*vocabulary.spellings, ""], dtype=object)
        self.epoch = self.read = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.epoch += 1
        for stretch in sentence_blocks(self.corpus):
            words = self.spellings[self.words.find(stretch.ids, stretch.word_starts)].tolist()
            for start, end in pairwise(stretch.sentence_starts.tolist()):
                yield words[start:end]
            self.read += len(words)
            self.progress(self.epoch, self.read)


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library's remarks for its developers away from our users for a while."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
