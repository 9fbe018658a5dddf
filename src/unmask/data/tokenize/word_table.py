"""A hash table of words (sequences of token ids) with batched lookup.

A hit is verified token by token. The high bits of a hash are the length of the word, so that words of one length have
consecutive numbers, and a random word of a given length is one draw from a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.ragged import concat_ranges, row_sums
from unmask.core.ragged import offsets as offsets_of
from unmask.core.records import Bools, Ids, Ints
from unmask.core.rng import UInts, randint

MAX_TOKENS = (1 << 16) - 2
"""The most tokens of a word; longer words are not found."""
UNKNOWN = -1
"""The number of a word that is not in the table."""
_PRIME = np.uint64(0x100000001B3)
_LENGTH_AT = np.uint64(48)


@dataclass(frozen=True, slots=True, eq=False)
class WordTable:
    """Distinct words sorted by hash: by length, then in arbitrary order."""

    hashes: UInts
    tokens: Ids
    offsets: Ints
    """The offsets of the words in `tokens`."""

    @staticmethod
    def of(tokens: Ids, offsets: Ints) -> WordTable:
        """A table of words in any order; `find` returns their numbers."""
        lengths = np.diff(offsets)
        if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= MAX_TOKENS:
            raise ValueError(f"a word has 1 to {MAX_TOKENS} tokens, found {lengths.min()} to {lengths.max()}")
        hashes = word_hashes(tokens, offsets[:-1])
        order = np.argsort(hashes, kind="stable")
        flat = tokens[concat_ranges(offsets[:-1][order], lengths[order])].astype(np.int32)
        made = WordTable(hashes[order], flat, offsets_of(lengths[order]))
        if not np.array_equal(made.find(flat, made.offsets[:-1]), np.arange(len(made))):
            raise ValueError("a word occurs twice in the table")
        return made

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each word."""
        return np.diff(self.offsets)

    def word(self, number: int) -> Ids:
        """The tokens of one word."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def select(self, keep: Bools) -> tuple[WordTable, Ints]:
        """A table of some of the words, and the number there of each word here; `UNKNOWN` for those left out."""
        lengths = self.lengths[keep]
        flat = self.tokens[concat_ranges(self.offsets[:-1][keep], lengths)]
        number = np.where(keep, np.cumsum(keep) - 1, UNKNOWN)
        return WordTable(self.hashes[keep], flat, offsets_of(lengths)), number

    def find(self, ids: Ids, starts: Ints) -> Ints:
        """The number of each word (words begin at `starts` and fill `ids`); `UNKNOWN` where it is not in the table."""
        hashes = word_hashes(ids, starts)
        lengths = word_lengths(ids, starts)
        place = np.searchsorted(self.hashes, hashes)
        number = np.full(len(starts), UNKNOWN, dtype=np.int64)
        left = self._with_hash(np.arange(len(starts)), place, hashes)
        while len(left):
            same = self._equal(place[left], ids, starts[left], lengths[left])
            number[left[same]] = place[left[same]]
            # Words with equal hashes are adjacent: try the next slot.
            left = left[~same]
            place[left] += 1
            left = self._with_hash(left, place, hashes)
        return number

    def random_other(self, number: Ints, lengths: Ints, bits: UInts) -> Ints:
        """A random word of the same length, never the word `number` itself; `UNKNOWN` where there is no other."""
        low, others = self._others(number, lengths)
        pick = low + randint(bits, np.maximum(others, 1))
        # Skip the word itself.
        pick += (number != UNKNOWN) & (pick >= number)
        return np.where(others > 0, pick, UNKNOWN)

    def write(self, number: Ints, starts: Ints, into: Ids) -> None:
        """Overwrite words that begin at `starts` with words of the same length; `UNKNOWN` keeps one."""
        given = np.flatnonzero(number != UNKNOWN)
        size = word_lengths(into, starts)[given]
        into[concat_ranges(starts[given], size)] = self.tokens[concat_ranges(self.offsets[number[given]], size)]

    def _others(self, number: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """The first word of each length, and the number of such words without the word `number` itself."""
        length = np.minimum(lengths, MAX_TOKENS + 1).astype(np.uint64)
        low = np.searchsorted(self.hashes, length << _LENGTH_AT)
        high = np.searchsorted(self.hashes, (length + np.uint64(1)) << _LENGTH_AT)
        return low, high - low - (number != UNKNOWN)

    def _with_hash(self, which: Ints, place: Ints, hashes: UInts) -> Ints:
        """Those of `which` whose slot has their hash."""
        inside = which[place[which] < len(self)]
        found: Ints = inside[self.hashes[place[inside]] == hashes[inside]]
        return found

    def _equal(self, place: Ints, ids: Ids, starts: Ints, lengths: Ints) -> Bools:
        """Whether the words in these slots equal the words that begin at `starts`, token by token."""
        same: Bools = self.offsets[place + 1] - self.offsets[place] == lengths
        some = np.flatnonzero(same)
        size = lengths[some]
        differs = ids[concat_ranges(starts[some], size)] != self.tokens[concat_ranges(self.offsets[place[some]], size)]
        same[some] = row_sums(differs, offsets_of(size)) == 0
        return same


def word_lengths(ids: Ids, starts: Ints) -> Ints:
    """The number of tokens of words that begin at `starts` and fill `ids`."""
    return np.diff(np.append(starts, len(ids)))


def word_hashes(ids: Ids, starts: Ints) -> UInts:
    """A 64-bit hash of each word: 16 bits of length, then 48 bits of a polynomial of its token ids."""
    size = word_lengths(ids, starts)
    result = size.astype(np.uint64)
    inside = np.arange(len(size))
    for step in range(min(int(size.max(initial=0)), MAX_TOKENS)):
        inside = inside[size[inside] > step]
        mixed = (result[inside] ^ (ids[starts[inside] + step].astype(np.uint64) + np.uint64(1))) * _PRIME
        result[inside] = mixed ^ (mixed >> np.uint64(29))
    length = np.minimum(size, MAX_TOKENS + 1).astype(np.uint64)
    return (length << _LENGTH_AT) | (result >> np.uint64(16))
