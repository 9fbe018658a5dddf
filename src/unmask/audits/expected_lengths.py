"""Exact expected span lengths of T5's random segmentation and BART's trimmed Poisson draws."""

from __future__ import annotations

from math import comb, exp, factorial

import numpy as np

from unmask.audits.finding import Numbers
from unmask.core.records import Ints


def expected_cut_lengths(totals: Ints, parts: Ints, max_length: int) -> Numbers:
    """The expected number of parts of each length when totals are cut uniformly into parts.

    Of the C(n - 1, k - 1) ways to cut n tokens into k parts, C(n - l - 1, k - 2) give the first part l tokens, and all
    parts are alike. The last number counts all lengths from `max_length` up.
    """
    expected = np.zeros(max_length + 1)
    pairs, times = np.unique(np.stack([totals, parts], axis=1), axis=0, return_counts=True)
    for (n, k), rows in zip(pairs.tolist(), times.tolist(), strict=True):
        if n < 1:
            continue
        law = np.zeros(max(n, max_length) + 1)
        if k == 1:
            law[n] = 1.0
        else:
            law[1 : n - k + 2] = [comb(n - length - 1, k - 2) / comb(n - 1, k - 1) for length in range(1, n - k + 2)]
        expected[:-1] += rows * k * law[:max_length]
        expected[-1] += rows * k * law[max_length:].sum()
    return expected


def poisson_probabilities(mean: float, max_length: int) -> Numbers:
    """The probability of each length from 0 to `max_length` - 1, and of `max_length` or more."""
    law = np.array([exp(-mean) * mean**n / factorial(n) for n in range(max_length)])
    return np.append(law, 1.0 - law.sum())


def expected_covering_lengths(budgets: Ints, mean: float, max_length: int) -> Numbers:
    """The expected number of spans of each length when Poisson lengths are drawn up to a budget.

    The last length is trimmed. With `E(b)` the expected counts for a budget b and `p` the distribution, the first draw
    either covers b (and is trimmed to it) or leaves b - l: E(b) = first(b) + sum over l of p(l) E(b - l), where the
    term l = 0 is E(b) itself.
    """
    most = int(budgets.max(initial=0))
    law = poisson_probabilities(mean, most + 1)[: most + 1]
    table = np.zeros((most + 1, most + 1))
    for budget in range(1, most + 1):
        first = np.where(np.arange(most + 1) < budget, law, 0.0)
        first[budget] = 1.0 - law[:budget].sum()
        rest = law[1:budget] @ table[budget - 1 : 0 : -1] if budget > 1 else 0.0
        table[budget] = (first + rest) / (1.0 - law[0])
    counts = np.bincount(budgets, minlength=most + 1) @ table
    wide = np.append(counts, np.zeros(max_length + 1))
    return np.append(wide[:max_length], wide[max_length:].sum())
