"""EM training of a unigram language model over pieces (Kudo, 2018), with its lattice.

Frequent substrings are the seed, then expectation-maximization and pruning alternate. Sums have a fixed order, unlike
those of the library's trainer, so that every run gives the same pieces and scores.
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
"""The number of edges in one block, which bounds memory."""

Scores: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lattice:
    """A lattice: a word of n characters has n + 1 nodes; an edge is a piece from one node to a later one."""

    first: Ids
    """The first node of each word."""
    last: Ids
    """The last node of each word."""
    word: Ids
    """The word of each edge."""
    begin: Ids
    """The start node of each edge."""
    end: Ids
    """The end node of each edge."""
    piece: Ids
    """The piece of each edge."""
    groups: Ints
    """Offsets of the groups of edges that are processed in one step, by depth."""

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
        """The lattice without the edges of removed pieces; the others are renumbered."""
        stays = kept[self.piece]
        place = np.concatenate(([0], np.cumsum(stays)))
        groups = np.unique(place[self.groups])
        ends = (self.word[stays], self.begin[stays], self.end[stays], renumber[self.piece[stays]])
        return Lattice(self.first, self.last, *ends, groups)

    def best_scores(self, logp: Scores) -> Scores:
        """The Viterbi score of each word."""
        return self._forward(logp, np.maximum)[self.last]

    def expected_counts(self, logp: Scores, counts: Scores) -> Scores:
        """The expected count of each piece over all segmentations (forward-backward)."""
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
    """The sum of the weights of each number below `size`, added in a fixed order."""
    return np.bincount(numbers, weights=weights, minlength=size).astype(np.float64, copy=False)


def _groups(keys: Ids) -> Ints:
    return np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)])).astype(np.int64)


MAX_PIECE_CHARS = 16
_SHRINK = 0.75
_SEEDS = 5


@dataclass(frozen=True, slots=True)
class _Text:
    """All words concatenated: character numbers, and the word and depth of each character."""

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
    """Candidate pieces: first occurrence, length, count, and all positions."""

    first: Ids
    length: Ids
    count: Scores
    at: Ids
    piece: Ids


def fit_unigram(words: Counter[str], size: int) -> list[tuple[str, float]]:
    """The `size` most probable pieces, all single characters included."""
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
        loss = np.full(len(alive), np.inf)  # single characters are kept, so that every word can be segmented
        loss[long] = used[long] * (logp[long] - inner.best_scores(logp)[alive[long]])
        kept = _largest(loss, max(size, int(len(alive) * _SHRINK)))
        corpus, inner = corpus.select_pieces(kept, _renumber(kept)), inner.select_pieces(kept, _renumber(kept))
        alive, logp = alive[kept], logp[kept]


def _run_em(corpus: Lattice, logp: Scores, counts: Scores) -> tuple[Scores, Scores]:
    """Two EM iterations with the sparse prior of variational Bayes."""
    for _ in range(2):
        used = corpus.expected_counts(logp, counts)
        logp = _digamma(used + 1e-3) - _digamma(np.array(used.sum()))
    return logp, used


def _seeds(text: _Text) -> _Seeds:
    """All substrings that occur twice or more, by length: each extends a frequent one."""
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
    """A mask of the `count` largest values; ties go to the first."""
    marked = np.zeros(len(values), dtype=np.bool_)
    marked[np.argsort(-values, kind="stable")[:count]] = True
    return marked


def _renumber(kept: Bools) -> Ids:
    """The new number of each kept piece."""
    return (np.cumsum(kept) - 1).astype(np.int32)


def _pieces_of_pieces(seeds: _Seeds) -> Lattice:
    """The alternative segmentations of each piece: a lattice of its substrings."""
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
    # Six decimals: further ones may differ between processors.
    scored = zip(names, np.round(logp, 6).tolist(), strict=True)
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _digamma(x: Scores) -> Scores:
    """The digamma function: the recurrence up to 6, then the asymptotic series."""
    shift = np.zeros_like(x)
    for _ in range(6):
        shift = shift + 1.0 / x
        x = x + 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))
    result: Scores = np.log(x) - 0.5 / x - series - shift
    return result
