"""Word vectors by word2vec (Mikolov et al., 2013) or fastText (Bojanowski et al., 2017), with gensim.

The corpus is streamed once per epoch. With one thread, equal inputs give equal bytes.
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
"""Called with the epoch (from 1) and the words read so far, over all epochs."""

_PIECES = {"min_n": 2, "max_n": 5, "bucket": 1 << 18}
"""fastText's character n-grams, with word borders: short ones, because Chinese words are short. A table smaller than
the usual 2,000,000 keeps memory at a hundred megabytes.
"""


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Spellings, most frequent first, and their vectors."""

    spellings: tuple[str, ...]
    matrix: Floats


NO_VECTORS = WordVectors((), np.zeros((0, 0), np.float32))


def train_vectors(
    corpus: Corpus, vocabulary: WordVocabulary, config: VectorConfig, threads: int, progress: ProgressCallback
) -> WordVectors:
    """Train vectors. With one thread the result is deterministic; more threads race."""
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
    """A hash that is equal in every process, unlike Python's."""
    return zlib.crc32(text.encode())


class SpelledSentences:
    """The sentences as lists of spellings. Every iteration reads the corpus again: one epoch."""

    def __init__(self, corpus: Corpus, vocabulary: WordVocabulary, progress: ProgressCallback) -> None:
        self.corpus, self.words, self.progress = corpus, vocabulary.words, progress
        # A word outside the vocabulary is UNKNOWN, the last entry: an empty string, which is skipped.
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
    """Silence a logger for a block."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
