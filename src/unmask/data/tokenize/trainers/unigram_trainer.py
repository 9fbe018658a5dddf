"""Fits a unigram language model over pieces (Kudo, 2018): seed with frequent substrings, then estimate and prune.

What arrives: words with their counts. What leaves: pieces with log-probabilities, best first.
What never happens here: hash order or threads. The library's own trainer sums in the order of a hash table, so no two
of its runs agree; this one gives the same pieces and scores in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.core.ragged import offsets, positions_in_rows
from unmask.core.records import Bools, Ids, Ints
from unmask.data.tokenize.safe_splits import code_points

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


MAX_PIECE_CHARS = 16
_SHRINK = 0.75
_SEEDS = 5


@dataclass(frozen=True, slots=True)
class _Text:
    """All words end to end: the number of each character, and of each character its word and its depth in it."""

    alphabet: Ints
    character: Ints
    word: Ids
    depth: Ids
    lengths: Ids
    counts: Scores

    @staticmethod
    def of(words: Counter[str]) -> _Text:
        ordered = sorted(words)
        lengths = np.array([len(word) for word in ordered], dtype=np.int32)
        points = code_points("".join(ordered))
        alphabet, character = np.unique(points, return_inverse=True)
        word = np.repeat(np.arange(len(ordered), dtype=np.int32), lengths)
        depth = positions_in_rows(offsets(lengths)).astype(np.int32)
        counts = np.array([words[w] for w in ordered], dtype=np.float64)
        return _Text(alphabet.astype(np.int64), character.astype(np.int64), word, depth, lengths, counts)


@dataclass(frozen=True, slots=True)
class _Seeds:
    """Candidate pieces: where each is first seen, how long it is, how often it is seen; and every place it stands."""

    first: Ids
    length: Ids
    count: Scores
    at: Ids
    piece: Ids


def fit_unigram(words: Counter[str], size: int) -> list[tuple[str, float]]:
    """The `size` pieces that explain the words best. Every character of the words is one of them, so size must do."""
    if not words:
        return []
    text = _Text.of(words)
    seeds = _prune_seeds(text, _seeds(text), size)
    corpus = Lattice.of(text.lengths, text.word[seeds.at], text.depth[seeds.at], seeds.length[seeds.piece], seeds.piece)
    inner = _pieces_of_pieces(seeds)
    alive = np.arange(len(seeds.first))
    logp = np.log(seeds.count / seeds.count.sum())
    while True:
        logp, used = _run_em(corpus, logp, text.counts)
        if len(alive) <= size:
            return _spell_pieces(text, seeds, alive, logp)
        long = seeds.length[alive] > 1
        loss = np.full(len(alive), np.inf)  # a single character is always kept, so that every word can still be cut
        loss[long] = used[long] * (logp[long] - inner.best_scores(logp)[alive[long]])
        kept = _largest(loss, max(size, int(len(alive) * _SHRINK)))
        corpus, inner = corpus.select_pieces(kept, _renumber(kept)), inner.select_pieces(kept, _renumber(kept))
        alive, logp = alive[kept], logp[kept]


def _run_em(corpus: Lattice, logp: Scores, counts: Scores) -> tuple[Scores, Scores]:
    """Two rounds of expectation and maximisation, with the sparse prior of variational Bayes."""
    for _ in range(2):
        used = corpus.expected_counts(logp, counts)
        logp = _digamma(used + 1e-3) - _digamma(np.array(used.sum()))
    return logp, used


def _seeds(text: _Text) -> _Seeds:
    """Every substring seen twice or more, found length by length: a longer one only grows out of a frequent one."""
    at = np.arange(len(text.character), dtype=np.int32)
    gram = text.character
    room = text.lengths[text.word] - text.depth
    weight = text.counts[text.word]
    found: list[tuple[Ids, Ids, Scores, Ids, Ids]] = []
    total = 0
    for length in range(1, MAX_PIECE_CHARS + 1):
        if length > 1:
            longer = room[at] >= length
            at = at[longer]
            gram = gram[longer] * len(text.alphabet) + text.character[at + length - 1]
        _, seen, gram = np.unique(gram, return_index=True, return_inverse=True)
        count = weighted_bincount(gram, weight[at], len(seen))
        frequent = (count >= 2) | (length == 1)
        stays = frequent[gram]
        gram = (np.cumsum(frequent) - 1)[gram[stays]]
        first, at = at[seen[frequent]], at[stays]
        piece = (gram + total).astype(np.int32)
        found.append((first, np.full(len(first), length, dtype=np.int32), count[frequent], at, piece))
        total += len(first)
        if not len(at):
            break
    return _Seeds(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _prune_seeds(text: _Text, seeds: _Seeds, size: int) -> _Seeds:
    """All characters, and the substrings that cover most text."""
    cover = np.where(seeds.length == 1, np.inf, seeds.count * seeds.length)
    most = max(_SEEDS * size, len(text.alphabet))
    kept = _largest(cover, most)
    stays = kept[seeds.piece]
    piece = _renumber(kept)[seeds.piece[stays]]
    return _Seeds(seeds.first[kept], seeds.length[kept], seeds.count[kept], seeds.at[stays], piece)


def _largest(values: Scores, count: int) -> Bools:
    """Marks the `count` largest values; of equal ones the first."""
    marked = np.zeros(len(values), dtype=np.bool_)
    marked[np.argsort(-values, kind="stable")[:count]] = True
    return marked


def _renumber(kept: Bools) -> Ids:
    """The new number of each kept piece."""
    return (np.cumsum(kept) - 1).astype(np.int32)


def _pieces_of_pieces(seeds: _Seeds) -> Lattice:
    """How each piece could be cut if it were not a piece itself: the lattice of its own inside."""
    key = seeds.at.astype(np.int64) * (MAX_PIECE_CHARS + 1) + seeds.length[seeds.piece]
    order = np.argsort(key, kind="stable")
    key, piece = key[order], seeds.piece[order]
    edges: list[tuple[Ids, Ids, Ids, Ids]] = []
    for depth in range(MAX_PIECE_CHARS):
        for length in range(1, MAX_PIECE_CHARS + 1 - depth):
            inside = np.flatnonzero((seeds.length >= depth + length) & (seeds.length > length))
            wanted = (seeds.first[inside].astype(np.int64) + depth) * (MAX_PIECE_CHARS + 1) + length
            place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            real: Bools = key[place] == wanted
            word = inside[real].astype(np.int32)
            edges.append((word, np.full_like(word, depth), np.full_like(word, length), piece[place[real]]))
    return Lattice.of(seeds.length, *(np.concatenate(column) for column in zip(*edges, strict=True)))


def _spell_pieces(text: _Text, seeds: _Seeds, alive: Ints, logp: Scores) -> list[tuple[str, float]]:
    points = text.alphabet[text.character]
    spelled = zip(seeds.first[alive].tolist(), seeds.length[alive].tolist(), strict=True)
    names = ["".join(map(chr, points[a : a + length].tolist())) for a, length in spelled]
    # Six decimals: what lies beyond them may differ between two kinds of processor.
    scored = zip(names, np.round(logp, 6).tolist(), strict=True)
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _digamma(x: Scores) -> Scores:
    """The derivative of log Gamma: the recurrence up to 6, then the asymptotic series."""
    shift = np.zeros_like(x)
    for _ in range(6):
        shift = shift + 1.0 / x
        x = x + 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))
    result: Scores = np.log(x) - 0.5 / x - series - shift
    return result
