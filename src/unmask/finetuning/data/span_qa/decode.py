"""N-best decoding for extractive QA: the best valid spans of a passage from start and end logits.

A valid span starts before it ends, lies inside one window and has at most `max_answer_tokens` tokens. All valid spans
are compared, not only those of a few best ends. A token that occurs in several windows may start an answer only in the
window where it has most context (max-context rule of run_squad.py).

Shapes: W windows of a passage, N tokens of a window, P tokens of the passage, K tokens of the longest answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from unmask.core.records import Bools, Doubles, Ints

_MAX_CONSIDERED = 80
"""The spans of a window that are considered: four times as many as are kept, since some have the same text."""


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of a passage, both ends included, and the sum of its start and end logits."""

    score: float
    first: int
    last: int


def best_spans(scores: Sequence[Doubles], begin: Ints, max_answer_tokens: int) -> list[ScoredSpan]:
    """The best valid spans of a passage, best first; ties are broken by position.

    `scores` holds the logits of each window (N x 2), `begin` the first passage token of each window.
    """
    can_start_WP = is_max_context(begin, np.array([len(window) for window in scores]))
    found: list[ScoredSpan] = []
    for scores_N2, first, can_start_P in zip(scores, begin.tolist(), can_start_WP, strict=True):
        found.extend(_valid_spans(scores_N2, can_start_P[first : first + len(scores_N2)], max_answer_tokens, first))
    return sorted(found, key=lambda span: (-span.score, span.first, span.last))


def is_max_context(begin: Ints, count: Ints) -> Bools:
    """Whether a window is the one where a token has most context, which is the smaller of both sides (run_squad.py).

    Of windows with the same context the longest wins, then the first.
    """
    token_P = np.arange(int((begin + count).max()))
    before_WP = token_P - begin[:, None]
    after_WP = count[:, None] - 1 - before_WP
    context_WP = np.minimum(before_WP, after_WP) + 0.01 * count[:, None]
    context_WP[(before_WP < 0) | (after_WP < 0)] = -np.inf
    owner_P = context_WP.argmax(axis=0)
    chosen: Bools = owner_P == np.arange(len(begin))[:, None]
    return chosen


def _valid_spans(scores_N2: Doubles, can_start_N: Bools, longest: int, shift: int) -> Iterator[ScoredSpan]:
    """The best valid spans of a window, unordered; tokens are counted from `shift`."""
    if not len(scores_N2):
        return
    width = min(longest, len(scores_N2))
    ends_M = np.append(scores_N2[:, 1], np.full(width - 1, -np.inf))
    both_NK = np.where(can_start_N, scores_N2[:, 0], -np.inf)[:, None] + sliding_window_view(ends_M, width)
    scores_M = both_NK.reshape(-1)
    some = min(_MAX_CONSIDERED, len(scores_M))
    for flat in np.argpartition(-scores_M, some - 1)[:some].tolist():
        if np.isfinite(scores_M[flat]):
            first = shift + flat // width
            yield ScoredSpan(float(scores_M[flat]), first, first + flat % width)
