"""The table of similar words: synonyms and nearest neighbors, its coverage, and a preview.

Punctuation and numbers have no similar words, and function words only those of a synonym file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.records import Bools, Ids, Ints
from unmask.data.similar_words.config import TableConfig
from unmask.data.similar_words.nearest import NO_PAIRS, NeighbourPairs, find_nearest, keep_best
from unmask.data.similar_words.synonyms import Groups, synonym_pairs
from unmask.data.similar_words.train_vectors import WordVectors
from unmask.data.similar_words.word_counts import WordVocabulary
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.word_table import UNKNOWN


@dataclass(frozen=True, slots=True)
class Coverage:
    """The running words of a corpus by their entry in the table. The five fractions sum to one."""

    with_similar: float
    """With a similar word."""
    without_similar: float
    """With a vector, but without a neighbor near enough."""
    function_words: float
    """Function words without synonyms."""
    punctuation: float
    """Punctuation and numbers."""
    rare: float
    """Too rare for the vocabulary, or unknown to the tokenizer."""


def build_table(
    vocabulary: WordVocabulary, vectors: WordVectors, groups: Groups, tokenizer: Tokenizer, config: TableConfig
) -> SimilarWords:
    """The table: synonyms first, then nearest neighbors, up to `config.num_neighbours` in all."""
    learned = _learned_pairs(vocabulary, vectors, config)
    given = synonym_pairs(groups, vocabulary, tokenizer) if groups else NO_PAIRS
    links = keep_best([given, learned], len(vocabulary), config.num_neighbours)
    return _exchangeable_only(vocabulary, links)


def _learned_pairs(vocabulary: WordVocabulary, vectors: WordVectors, config: TableConfig) -> NeighbourPairs:
    if not vectors.spellings:
        return NO_PAIRS
    place = {spelling: number for number, spelling in enumerate(vectors.spellings)}
    words = np.flatnonzero(vocabulary.is_exchangeable & ~vocabulary.is_function_word)
    if not len(words):
        return NO_PAIRS
    # The common mean makes rare words neighbors of every word: remove it (Mu and Viswanath, 2018).
    centred = vectors.matrix - vectors.matrix.mean(axis=0)
    matrix = centred[[place[vocabulary.spellings[word]] for word in words.tolist()]]
    same = vocabulary.spelling_numbers[words]
    kinds = 2 * vocabulary.kinds[words] + vocabulary.is_chinese[words]  # 电脑 and computer occur in the same contexts
    found = find_nearest(matrix, kinds, same, config.num_neighbours, config.min_cosine)
    return NeighbourPairs(words[found.word], words[found.other])


def _exchangeable_only(vocabulary: WordVocabulary, links: NeighbourPairs) -> SimilarWords:
    """The table without punctuation and numbers, which also excludes them from random words."""
    keep = vocabulary.is_exchangeable
    words, number = vocabulary.words.select(keep)
    return SimilarWords.from_pairs(words, number[links.word], number[links.other])


def measure_coverage(vocabulary: WordVocabulary, table: SimilarWords) -> Coverage:
    """The fraction of running words with a similar word, and of those without one by reason."""
    words = vocabulary.words
    near = table.has_similar(words.tokens, words.offsets[:-1])
    letters, function = vocabulary.is_exchangeable, vocabulary.is_function_word

    def share(which: Bools) -> float:
        return float(vocabulary.counts[which].sum()) / vocabulary.num_running_words

    left = letters & ~near
    parts = share(near), share(left & ~function), share(left & function), share(~letters)
    return Coverage(*parts, rare=1 - sum(parts))


def preview(vocabulary: WordVocabulary, table: SimilarWords, count: int) -> list[tuple[str, tuple[str, ...]]]:
    """The most frequent words of the table with the spellings of their similar words.

    Function words are included only if they have synonyms.
    """
    number = table.words.find(vocabulary.words.tokens, vocabulary.words.offsets[:-1])
    back = np.zeros(len(table), dtype=np.int64)
    back[number[number != UNKNOWN]] = np.flatnonzero(number != UNKNOWN)
    shown = ~vocabulary.is_function_word[back] | (np.diff(table.rows) > 0)
    order = np.argsort(-vocabulary.counts[back], kind="stable")
    frequent: Ints = order[shown[order]][:count]

    def spelled(words: Ints | Ids) -> tuple[str, ...]:
        return tuple(vocabulary.spellings[word] for word in back[words])

    rows = [table.neighbours[table.rows[word] : table.rows[word + 1]] for word in frequent]
    return list(zip(spelled(frequent), map(spelled, rows), strict=True))
