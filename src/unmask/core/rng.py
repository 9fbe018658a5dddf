"""Counter-based random numbers: every draw is a function of its address, and there is no state.

An address is a seed and the numbers that name one place in the work (task, epoch, row, purpose). The results are 64-bit
words, uniform numbers, bounded integers and permutations, for whole arrays of addresses at once, the same in every
version and for any number of processes.

The generator is SplitMix64 as a counter-based hash: a key is a 64-bit state that every further part of the address
is mixed into, and word number `i` under a key is `mix(state + i * GOLDEN)`. Two rows that differ in any part of their
address have unrelated states, so nothing is ever advanced, saved or restored.

    >>> key = Key.of(7, "mlm").fold(np.arange(2))        # seed 7, task "mlm", rows 0 and 1
    >>> uniform(key.draws(Lane.SELECT, 3)).shape          # three numbers for each row
    (2, 3)
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

UInts: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HIGH, _MIDDLE, _LOW = np.uint64(30), np.uint64(27), np.uint64(31)


class DrawPurpose(IntEnum):
    """What a draw is for. Two purposes of one row never read the same words."""

    PLAN = 0
    SHUFFLE = 1
    SELECT = 2
    LENGTH = 3
    PLACE = 4
    SHOW = 5
    TOKEN = 6
    WORD = 7
    ORDER = 8
    MIX = 9


@dataclass(frozen=True, slots=True)
class Key:
    """An address: one 64-bit state, or an array of them (one for each row)."""

    state: UInts

    @staticmethod
    def of(seed: int, *parts: int | str) -> Key:
        """Start an address from a seed and the fixed parts that follow it."""
        return Key(np.asarray(seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)).fold_in(*parts)

    def fold_in(self, *parts: int | str | Integers) -> Key:
        """Extend the address. An array part gives one key for each of its numbers."""
        state = self.state
        with np.errstate(over="ignore"):
            for part in parts:
                state = _mix(_mix(state + _GOLDEN) ^ _to_uint64(part))
        return Key(state)

    def bits(self, purpose: DrawPurpose, count: int) -> UInts:
        """The first `count` words of a lane: shape `(*rows, count)`."""
        with np.errstate(over="ignore"):
            base = self.fold_in(int(purpose)).state
            return _mix(base[..., None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN)

    def bits_per_token(self, purpose: DrawPurpose, rows: Integers) -> UInts:
        """One word for every position of ragged rows, laid out flat. `rows` holds the offsets of the rows."""
        lengths = np.diff(rows)
        with np.errstate(over="ignore"):
            base = self.fold_in(int(purpose)).state
            if len(lengths) and (lengths == lengths[0]).all():
                counter = np.arange(1, int(lengths[0]) + 1, dtype=np.uint64) * _GOLDEN
                return _mix(base[:, None] + counter).reshape(-1)
            counter = np.arange(1, int(rows[-1]) + 1, dtype=np.uint64) * _GOLDEN
            offset = base - rows[:-1].astype(np.uint64) * _GOLDEN
            return _mix(np.repeat(offset, lengths) + counter)

    def bits_at(self, purpose: DrawPurpose, row: Integers, index: Integers) -> UInts:
        """The words that `spread` gives at some positions only: `index` counts inside each `row`."""
        with np.errstate(over="ignore"):
            base = self.fold_in(int(purpose)).state
            return _mix(base[row] + (index + 1).astype(np.uint64) * _GOLDEN)


def uniform(bits: UInts) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) from the 53 high bits."""
    return ((bits >> np.uint64(11)) * 2.0**-53).astype(np.float64, copy=False)


def randint(bits: UInts, bound: int | npt.NDArray[np.integer]) -> Integers:
    """Whole numbers from 0 to `bound` - 1. The bias is below `bound` / 2**32, i.e. not measurable for vocabularies."""
    limit = np.asarray(bound).astype(np.uint64)
    return (((bits >> np.uint64(32)) * limit) >> np.uint64(32)).astype(np.int64)


def categorical(bits: UInts, weights: npt.ArrayLike) -> Integers:
    """The index of a share drawn in proportion: `choose(words, (0.8, 0.1, 0.1))` is 0 for eight in ten."""
    edges = np.cumsum(np.asarray(weights, dtype=np.float64))
    return np.searchsorted(edges[:-1] / edges[-1], uniform(bits), side="right").astype(np.int64)


def permuted_index(index: Integers, size: int, key: Key) -> Integers:
    """Where each index goes in a keyed permutation of `size` numbers, without ever holding the permutation.

    Twelve Feistel rounds (four favour some places when there are few) over two digits, whose pairs are a little more
    than `size`; a result outside is walked on until it falls inside, so every index has exactly one image.
    """
    wide = math.isqrt(max(size - 1, 0)) + 1
    rounds = key.bits(DrawPurpose.SHUFFLE, 12)
    result = np.asarray(index, dtype=np.uint64).copy()
    outside = np.ones(result.shape, dtype=bool)
    while outside.any():
        result[outside] = _feistel(result[outside], wide, -(-size // wide), rounds)
        outside = result >= size
    return result.astype(np.int64)


def _feistel(value: UInts, wide: int, high: int, rounds: UInts) -> UInts:
    """Each digit in turn is shifted by a hash of the other one; `wide` and `high` are how many values they have."""
    columns, rows = np.uint64(wide), np.uint64(high)
    left, right = value // columns, value % columns
    with np.errstate(over="ignore"):
        for one, other in rounds.reshape(-1, 2):
            left = (left + _mix(right + one) % rows) % rows
            right = (right + _mix(left + other) % columns) % columns
    return left * columns + right


def _to_uint64(part: int | str | Integers) -> UInts:
    if isinstance(part, str):
        return np.asarray(int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest(), "little"), np.uint64)
    if isinstance(part, int):
        return np.asarray(part & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    return part.astype(np.uint64)


def _mix(z: UInts) -> UInts:
    """In place as far as it goes, which spares large arrays some memory to be taken and given back."""
    mixed = z >> _HIGH
    mixed ^= z
    mixed *= _FIRST
    mixed ^= mixed >> _MIDDLE
    mixed *= _SECOND
    mixed ^= mixed >> _LOW
    return mixed
