"""The table of similar words: which words come into it, what share of a text it covers, and what it looks like.

What arrives: a vocabulary with vectors, synonyms, or both. What leaves: `StandIns`, and numbers that describe it.
What never happens here: a stand-in for punctuation or a number, or a learned one for a function word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.records import Bools, Ids, Ints
from unmask.tokenize.lexicon import UNKNOWN
from unmask.tokenize.stand_ins import StandIns
from unmask.tokenize.tokenizer import Tokenizer
from unmask.vectors.neighbours import NO_LINKS, Links, merged, nearest
from unmask.vectors.settings import Choosing
from unmask.vectors.synonyms import Groups, synonym_links
from unmask.vectors.train import Vectors
from unmask.vectors.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Coverage:
    """The running words of a corpus by what the table can do for them. The five sum to one."""

    near: float
    """Have a stand-in."""
    alone: float
    """Have a vector, but nobody is near enough."""
    function: float
    """Function words that no synonym file speaks of."""
    marks: float
    """Punctuation and numbers."""
    rare: float
    """Too rare to be in the vocabulary, or unknown to the tokenizer."""


def choose(vocabulary: Vocabulary, vectors: Vectors, groups: Groups, tokenizer: Tokenizer, how: Choosing) -> StandIns:
    """The table: the synonyms of a word first, then its nearest neighbours, `how.neighbours` in all."""
    learned = _learned(vocabulary, vectors, how)
    given = synonym_links(groups, vocabulary, tokenizer) if groups else NO_LINKS
    links = merged([given, learned], len(vocabulary), how.neighbours)
    return _exchangeable_only(vocabulary, links)


def _learned(vocabulary: Vocabulary, vectors: Vectors, how: Choosing) -> Links:
    if not vectors.spellings:
        return NO_LINKS
    place = {spelling: number for number, spelling in enumerate(vectors.spellings)}
    words = np.flatnonzero(vocabulary.exchangeable & ~vocabulary.function)
    if not len(words):
        return NO_LINKS
    # What all vectors share says nothing about similarity, and makes rare words everyone's neighbours: take it away
    # (Mu and Viswanath, 2018).
    centred = vectors.matrix - vectors.matrix.mean(axis=0)
    matrix = centred[[place[vocabulary.spellings[word]] for word in words.tolist()]]
    same = vocabulary.spelling_numbers[words]
    kinds = 2 * vocabulary.kinds[words] + vocabulary.chinese[words]  # 电脑 and computer keep the same company
    found = nearest(matrix, kinds, same, how.neighbours, how.at_least)
    return Links(words[found.word], words[found.other])


def _exchangeable_only(vocabulary: Vocabulary, links: Links) -> StandIns:
    """The table without punctuation and numbers, so that no random word is a comma either."""
    keep = vocabulary.exchangeable
    words, number = vocabulary.words.only(keep)
    return StandIns.linked(words, number[links.word], number[links.other])


def coverage(vocabulary: Vocabulary, table: StandIns) -> Coverage:
    """What share of the running words has a stand-in, and why the others have none."""
    words = vocabulary.words
    near = table.covered(words.tokens, words.offsets[:-1])
    letters, function = vocabulary.exchangeable, vocabulary.function

    def share(which: Bools) -> float:
        return float(vocabulary.counts[which].sum()) / vocabulary.running

    left = letters & ~near
    parts = share(near), share(left & ~function), share(left & function), share(~letters)
    return Coverage(*parts, rare=1 - sum(parts))


def look(vocabulary: Vocabulary, table: StandIns, count: int) -> list[tuple[str, tuple[str, ...]]]:
    """The most frequent words of the table with the spellings of their stand-ins: is it any good?

    Function words are passed over unless somebody stands in for them.
    """
    number = table.words.find(vocabulary.words.tokens, vocabulary.words.offsets[:-1])
    back = np.zeros(len(table), dtype=np.int64)
    back[number[number != UNKNOWN]] = np.flatnonzero(number != UNKNOWN)
    shown = ~vocabulary.function[back] | (np.diff(table.rows) > 0)
    order = np.argsort(-vocabulary.counts[back], kind="stable")
    frequent: Ints = order[shown[order]][:count]

    def spelled(words: Ints | Ids) -> tuple[str, ...]:
        return tuple(vocabulary.spellings[word] for word in back[words])

    rows = [table.neighbours[table.rows[word] : table.rows[word + 1]] for word in frequent]
    return list(zip(spelled(frequent), map(spelled, rows), strict=True))
