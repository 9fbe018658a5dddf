"""All ways to cut many words into pieces, as one flat graph.

What arrives: words laid end to end, and which piece stands at which place. What leaves: sums or maxima over all cuts.
What never happens here: a Python loop over words. Edges that start equally deep in their words and are equally long
never meet in a node, so each such group is one step of numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.core.records import Bools, Ids, Ints

_BLOCK = 1 << 20
"""Edges that are weighed at a time, to bound memory."""

Scores: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lattice:
    """A word of n characters has n + 1 nodes; an edge is a piece that leads from one node to a later one."""

    first: Ids
    """The node before each word."""
    last: Ids
    """The node after each word."""
    word: Ids
    """Of each edge: its word."""
    begin: Ids
    """Of each edge: the node it starts from."""
    end: Ids
    """Of each edge: the node it leads to."""
    piece: Ids
    """Of each edge: its piece."""
    groups: Ints
    """Offsets of the groups of edges that can be walked in one step, shallow ones first."""

    @staticmethod
    def of(lengths: Ids, word: Ids, depth: Ids, length: Ids, piece: Ids) -> Lattice:
        """A lattice over words of these lengths, from edges that start at `depth` inside their word."""
        last = (np.cumsum(lengths + 1) - 1).astype(np.int32)
        first = last - lengths
        key = depth * (int(length.max(initial=0)) + 1) + length
        order = np.argsort(key, kind="stable")
        word, depth, length, piece = word[order], depth[order], length[order], piece[order]
        begin = first[word] + depth
        return Lattice(first, last, word, begin, begin + length, piece, _groups(key[order]))

    def select_pieces(self, kept: Bools, renumber: Ids) -> Lattice:
        """The lattice without the edges of pieces that are not kept; the others get new numbers."""
        stays = kept[self.piece]
        place = np.concatenate(([0], np.cumsum(stays)))
        groups = np.unique(place[self.groups])
        ends = (self.word[stays], self.begin[stays], self.end[stays], renumber[self.piece[stays]])
        return Lattice(self.first, self.last, *ends, groups)

    def best_scores(self, logp: Scores) -> Scores:
        """The score of the best cut of each word."""
        return self._forward(logp, np.maximum)[self.last]

    def expected_counts(self, logp: Scores, counts: Scores) -> Scores:
        """How often each piece is used, averaged over all cuts of all words (forward and backward)."""
        before, after = self._forward(logp, np.logaddexp), self._backward(logp)
        total = before[self.last]
        used = np.zeros(len(logp))
        for start in range(0, len(self.piece), _BLOCK):
            block = slice(start, start + _BLOCK)
            word, piece = self.word[block], self.piece[block]
            share = before[self.begin[block]] + logp[piece] + after[self.end[block]] - total[word]
            used += weighted_bincount(piece, np.exp(share) * counts[word], len(logp))
        return used

    def _forward(self, logp: Scores, join: np.ufunc) -> Scores:
        score = self._start(self.first)
        for group in self._steps():
            end = self.end[group]
            score[end] = join(score[end], score[self.begin[group]] + logp[self.piece[group]])
        return score

    def _backward(self, logp: Scores) -> Scores:
        score = self._start(self.last)
        for group in reversed(list(self._steps())):
            begin = self.begin[group]
            score[begin] = np.logaddexp(score[begin], score[self.end[group]] + logp[self.piece[group]])
        return score

    def _start(self, nodes: Ids) -> Scores:
        score = np.full(int(self.last[-1]) + 1, -np.inf)
        score[nodes] = 0.0
        return score

    def _steps(self) -> Iterator[slice]:
        return (slice(a, b) for a, b in zip(self.groups[:-1].tolist(), self.groups[1:].tolist(), strict=True))


def weighted_bincount(numbers: Ids | Ints, weights: Scores, size: int) -> Scores:
    """The sum of the weights of each number from 0 to `size` - 1, always added up in the same order."""
    return np.bincount(numbers, weights=weights, minlength=size).astype(np.float64, copy=False)


def _groups(keys: Ids) -> Ints:
    return np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)])).astype(np.int64)
