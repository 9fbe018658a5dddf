"""The unigram fit against brute force over all ways to cut a word."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.data.tokenize.trainers.unigram_trainer import Lattice, fit_unigram


def cuts(word, scores):
    """Every way to write a word with known pieces."""
    for borders in product((False, True), repeat=len(word) - 1):
        places = [0, *(i + 1 for i, border in enumerate(borders) if border), len(word)]
        parts = [word[a:b] for a, b in pairwise(places)]
        if all(part in scores for part in parts):
            yield parts


def lattice_of(words, pieces):
    edges = [
        (w, a, n, pieces.index(word[a : a + n]))
        for w, word in enumerate(words)
        for a in range(len(word))
        for n in range(1, len(word) - a + 1)
        if word[a : a + n] in pieces
    ]
    table = np.array(edges, dtype=np.int64).reshape(-1, 4)
    return Lattice.of(np.array([len(word) for word in words]), *table.T)


@given(
    words=st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=4),
    longer=st.sets(st.text("ab", min_size=2, max_size=4), max_size=5),
)
@settings(deadline=None, max_examples=80)
def test_expected_use_and_best_cut(words, longer):
    pieces = ["a", "b", *sorted(longer)]
    scores = {piece: -1.0 - 0.37 * number for number, piece in enumerate(pieces)}
    logp = np.array([scores[piece] for piece in pieces])
    counts = np.arange(1.0, len(words) + 1)
    used, best = Counter(), []
    for word, count in zip(words, counts, strict=True):
        ways = [(parts, sum(scores[part] for part in parts)) for parts in cuts(word, scores)]
        total = sum(math.exp(score) for _, score in ways)
        best.append(max(score for _, score in ways))
        for parts, score in ways:
            for part in parts:
                used[part] += count * math.exp(score) / total
    lattice = lattice_of(words, pieces)
    np.testing.assert_allclose(lattice.best_scores(logp), best)
    np.testing.assert_allclose(lattice.expected_counts(logp, counts), [used[piece] for piece in pieces], atol=1e-12)


def test_frequent_words_become_pieces_and_every_character_stays():
    words = Counter({"▁language": 90, "▁model": 80, "▁mode": 5, "▁zyx": 1})
    pieces = dict(fit_unigram(words, 24))
    assert {"▁language", "▁model"} <= set(pieces)
    assert set("▁languagemodezyx") <= set(pieces)
    assert len(pieces) == 24


def test_scores_fall_and_are_probabilities():
    scores = [score for _, score in fit_unigram(Counter({"abab": 9, "ab": 7, "b": 3}), 4)]
    assert scores == sorted(scores, reverse=True)
    assert sum(map(math.exp, scores)) == pytest.approx(1.0, abs=0.1)


def test_no_words_give_no_pieces():
    assert fit_unigram(Counter(), 10) == []
