"""Which words may stand in for which: the table that similar-word replacement reads (MacBERT).

What arrives: words as token ids, with their nearest neighbours of the same number of tokens, best first.
What leaves: for many words at once, the ids of a drawn neighbour, or of a random word of the same length.
What never happens here: training vectors. `unmask vectors` makes the table; this file looks words up in it.

A word is found by a 64-bit hash of its token ids, so that a whole batch is looked up by one binary search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.keys import Words, below
from unmask.ragged import ranges
from unmask.records import Ids, Ints

_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class StandIns:
    """Words sorted by hash, each with up to `width` neighbours (numbers of other words; -1 where there are fewer)."""

    hashes: Words
    offsets: Ints
    """Where each word's tokens begin and end in `tokens`."""
    tokens: Ids
    neighbours: npt.NDArray[np.int32]
    by_length: Ints
    """The numbers of all words, sorted by their length in tokens."""

    @staticmethod
    def of(words: list[tuple[int, ...]], neighbours: list[list[int]]) -> StandIns:
        """A table from words and, for each, the list numbers of its neighbours. Other lengths are left out."""
        width = max((len(row) for row in neighbours), default=0)
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        tokens = np.array([token for word in words for token in word], dtype=np.int32)
        offsets = np.append(0, np.cumsum(lengths))
        hashes = word_hashes(tokens, offsets[:-1])
        order = np.argsort(hashes, kind="stable")
        place = np.empty(len(words), dtype=np.int64)
        place[order] = np.arange(len(words))
        table = np.full((len(words), width), -1, dtype=np.int32)
        for number, row in enumerate(neighbours):
            same = [place[other] for other in row if lengths[other] == lengths[number] and other != number]
            table[place[number], : len(same)] = same
        sizes = lengths[order]
        gather = ranges(offsets[:-1][order], sizes)
        by_length = np.argsort(sizes, kind="stable")
        return StandIns(hashes[order], np.append(0, np.cumsum(sizes)), tokens[gather], table, by_length)

    def __len__(self) -> int:
        return len(self.hashes)

    def similar(self, ids: Ids, starts: Ints, draws: Words, spare: Ids) -> Ids:
        """A drawn neighbour for each word (words begin at `starts`); a word without one gets a random word."""
        number = self._find(ids, starts)
        known = np.where(number >= 0, (self.neighbours[number] >= 0).sum(axis=1), 0) if len(self) else 0 * number
        pick = below(draws[starts], np.maximum(known, 1))
        word = np.where(known > 0, self.neighbours[number, pick], -1) if self.neighbours.size else -1 - 0 * number
        result = self.any_of_length(ids, starts, draws, spare)
        return self._write(result, starts, word)

    def any_of_length(self, ids: Ids, starts: Ints, draws: Words, spare: Ids) -> Ids:
        """A random word with as many tokens for each word; random tokens (`spare`) where the table has none."""
        lengths = np.diff(np.append(starts, len(ids)))
        sizes = np.diff(self.offsets)[self.by_length]
        low, high = np.searchsorted(sizes, lengths, "left"), np.searchsorted(sizes, lengths, "right")
        pick = low + below(draws[starts] * _PRIME, np.maximum(high - low, 1))
        word = np.where(high > low, self.by_length[np.minimum(pick, len(sizes) - 1)], -1) if len(sizes) else 0 * low - 1
        return self._write(spare.copy(), starts, word)

    def covered(self, ids: Ids, starts: Ints) -> npt.NDArray[np.bool_]:
        """Whether each word has at least one neighbour; what an audit reports."""
        number = self._find(ids, starts)
        if not self.neighbours.size:
            return np.zeros(len(starts), dtype=np.bool_)
        known: npt.NDArray[np.bool_] = (number >= 0) & (self.neighbours[number, 0] >= 0)
        return known

    def _find(self, ids: Ids, starts: Ints) -> Ints:
        hashes = word_hashes(ids, starts)
        place = np.minimum(np.searchsorted(self.hashes, hashes), max(len(self) - 1, 0))
        return np.where(self.hashes[place] == hashes, place, -1) if len(self) else np.full(len(starts), -1)

    def _write(self, result: Ids, starts: Ints, word: Ints) -> Ids:
        """Copy the tokens of the given words (-1: leave) over the words that begin at `starts`."""
        chosen = np.flatnonzero(word >= 0)
        size = np.diff(np.append(starts, len(result)))[chosen]
        shift = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        result[np.repeat(starts[chosen], size) + shift] = self.tokens[
            np.repeat(self.offsets[word[chosen]], size) + shift
        ]
        return result


def word_hashes(ids: Ids, starts: Ints) -> Words:
    """A 64-bit hash of each word's token ids: a polynomial in a prime, then mixed with the length."""
    size = np.diff(np.append(starts, len(ids)))
    result = size.astype(np.uint64)
    with np.errstate(over="ignore"):
        for step in range(int(size.max(initial=0))):
            inside = size > step
            result[inside] = (result[inside] ^ (ids[starts[inside] + step].astype(np.uint64) + np.uint64(1))) * _PRIME
            result[inside] ^= result[inside] >> np.uint64(29)
    return result


NO_STAND_INS = StandIns.of([], [])
