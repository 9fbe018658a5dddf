"""Nearest neighbors of words by the cosine of their vectors, in blocks.

V words, K words of one kind, B words of a block, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.core.records import Floats, Ints

_CELLS = 1 << 24
"""Similarities in one block: 64 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourPairs:
    """Pairs of word numbers: `other` is a neighbor of `word`. The pairs of one word are sorted, best first."""

    word: Ints
    other: Ints

    def __len__(self) -> int:
        return len(self.word)


NO_PAIRS = NeighbourPairs(np.zeros(0, np.int64), np.zeros(0, np.int64))


def find_nearest(vectors_VD: Floats, kinds: Ints, same: Ints, count: int, min_cosine: float) -> NeighbourPairs:
    """Up to `count` nearest words of the same kind with a cosine of at least `at_least`.

    Words with the same number in `same` are spellings of one word, and not neighbors of each other.
    """
    norm = np.linalg.norm(vectors_VD, axis=1, keepdims=True)
    unit_VD = vectors_VD / np.maximum(norm, np.finfo(np.float32).tiny)
    found = [NO_PAIRS]
    for kind in np.unique(kinds):
        members = np.flatnonzero(kinds == kind)
        found.extend(_of_kind(unit_VD[members], members, same[members], count, min_cosine))
    return concat(found)


def _of_kind(unit_KD: Floats, members: Ints, same: Ints, count: int, min_cosine: float) -> Iterator[NeighbourPairs]:
    # The best hits of a word are itself and its other spellings: find that many more, then drop them.
    wanted = min(count + int(np.bincount(np.unique(same, return_inverse=True)[1]).max()), len(members))
    size = max(1, _CELLS // len(members))
    for start in range(0, len(members), size):
        cosine_BK = unit_KD[start : start + size] @ unit_KD.T
        best = np.sort(top_k_columns(cosine_BK, wanted), axis=1)
        cosine = np.take_along_axis(cosine_BK, best, axis=1)
        order = np.argsort(-cosine, axis=1, kind="stable")
        best, cosine = np.take_along_axis(best, order, axis=1), np.take_along_axis(cosine, order, axis=1)
        own = np.arange(start, start + len(best))
        fits = (same[best] != same[own][:, None]) & (cosine >= min_cosine)
        fits &= np.cumsum(fits, axis=1) <= count
        row, column = np.nonzero(fits)
        yield NeighbourPairs(members[own[row]], members[best[row, column]])


def top_k_columns(scores_BK: Floats, count: int) -> Ints:
    """The columns of the `count` largest numbers of each row, unordered; there are at least so many columns.

    A tournament: columns form groups of up to 32, and only the `count` groups with the largest maxima can contain one
    of the `count` largest. It is exact, and ten times as fast as partitioning whole rows.
    """
    rows, columns = scores_BK.shape
    heat = max(1, min(32, columns // count))
    heats = -(-columns // heat)
    padded = np.full((rows, heat * heats), -np.inf, dtype=np.float32)
    padded[:, :columns] = scores_BK
    # Column c is in group c % groups, so that the maxima are elementwise over slices of a row.
    field = padded.reshape(rows, heat, heats)
    best = np.argpartition(field.max(axis=1), heats - count, axis=1)[:, -count:]
    finalists = np.take_along_axis(field, best[:, None, :], axis=2).reshape(rows, -1)
    final = np.argpartition(finalists, finalists.shape[1] - count, axis=1)[:, -count:]
    columns_BC: Ints = final // count * heats + np.take_along_axis(best, final % count, axis=1)
    return columns_BC


def concat(parts: list[NeighbourPairs]) -> NeighbourPairs:
    """All pairs, those of the first part first."""
    return NeighbourPairs(np.concatenate([part.word for part in parts]), np.concatenate([part.other for part in parts]))


def keep_best(parts: list[NeighbourPairs], size: int, count: int) -> NeighbourPairs:
    """The first `count` different neighbors of each of `size` words, those of the first part first."""
    every = concat(parts)
    order = np.argsort(every.word, kind="stable")
    word, other = every.word[order], every.other[order]
    first = np.sort(np.unique(word * size + other, return_index=True)[1])
    word, other = word[first], other[first]
    rank = np.arange(len(word)) - np.searchsorted(word, word)
    return NeighbourPairs(word[rank < count], other[rank < count])
