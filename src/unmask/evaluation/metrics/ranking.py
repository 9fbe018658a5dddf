"""Ranking metrics per group of candidates: MAP, MRR, precision at 1 and nDCG at 10.

Ties have no order, so each metric is its *expected value* over all orders of tied candidates (McSherry and Najork,
2008): constant scores give exactly the value of a random order. Groups without a relevant candidate are left out, as is
usual on TREC-QA, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from unmask.core.records import Doubles, Ints
from unmask.evaluation.metrics.classification import Scores

_CUT = 10


@dataclass(frozen=True, slots=True)
class _Tie:
    """Candidates of a group with the same score."""

    above: int
    """How many candidates have a higher score."""
    right_above: int
    """How many of those are relevant."""
    size: int
    right: int
    gain: float
    """The sum of their relevance."""


def ranking_metrics(value: Doubles, predicted: Doubles, groups: Ints) -> Scores:
    """Mean average precision, mean reciprocal rank, precision at 1 and nDCG at 10, over groups.

    Group i holds the candidates `groups[i]:groups[i + 1]`. A `value` above 0 is relevant; nDCG uses the value as gain
    with the discount log2(1 + rank) (Järvelin and Kekäläinen, 2002; scikit-learn). Scores are NaN if every group is
    left out.
    """
    assert len(value) == len(predicted) == groups[-1], f"{len(predicted)} scores for {len(value)} candidates"
    assert (value >= 0).all(), "relevance cannot be negative"
    rows = [
        _group_metrics(value[first:end], predicted[first:end])
        for first, end in pairwise(groups)
        if value[first:end].any()
    ]
    means = np.mean(rows, axis=0) if rows else np.full(4, math.nan)
    scores = {name: float(mean) for name, mean in zip(("map", "mrr", "p_at_1", "ndcg_at_10"), means, strict=True)}
    return MappingProxyType(scores | {"groups": len(rows), "groups_left_out": len(groups) - 1 - len(rows)})


def ranking_baseline(value: Doubles, groups: Ints) -> Scores:
    """The expected scores of a random order."""
    return ranking_metrics(value, np.zeros_like(value), groups)


def _group_metrics(value: Doubles, predicted: Doubles) -> tuple[float, float, float, float]:
    """The four scores of one group with at least one relevant candidate."""
    ties = tuple(_ties(value, predicted))
    first = next(tie for tie in ties if tie.right)
    ideal = _discounted(tuple(_ties(value, value)))
    precision = sum(map(_precisions, ties)) / int((value > 0).sum())
    return precision, _reciprocal_rank(first), ties[0].right / ties[0].size, _discounted(ties) / ideal


def _ties(value: Doubles, predicted: Doubles) -> Iterator[_Tie]:
    """The ties of a group, highest score first."""
    above = right_above = 0
    for score in np.unique(predicted)[::-1]:
        equal = value[predicted == score]
        right = int((equal > 0).sum())
        yield _Tie(above, right_above, len(equal), right, float(equal.sum()))
        above, right_above = above + len(equal), right_above + right


def _precisions(tie: _Tie) -> float:
    """The expected sum, over the relevant candidates of a tie, of the precision down to each.

    Each place holds a relevant one with probability right / size; of the places before it in the tie, a share of
    (right - 1) / (size - 1) then holds the others.
    """
    others = (tie.right - 1) / (tie.size - 1) if tie.size > 1 else 0.0
    found = sum((tie.right_above + 1 + others * place) / (tie.above + place + 1) for place in range(tie.size))
    return tie.right / tie.size * found


def _reciprocal_rank(tie: _Tie) -> float:
    """The expected reciprocal rank of the first relevant candidate, given the first tie that holds one.

    Place by place: none was relevant so far, and this one is. At the latest, the relevant ones are all that is left.
    """
    expected, none_yet = 0.0, 1.0
    for place in range(tie.size - tie.right + 1):
        here = tie.right / (tie.size - place)
        expected += none_yet * here / (tie.above + place + 1)
        none_yet *= 1 - here
    return expected


def _discounted(ties: Sequence[_Tie]) -> float:
    """The expected discounted gain of the first places: candidates of a tie get the mean discount of its places."""
    return sum(
        tie.gain / tie.size * sum(1 / math.log2(rank + 1) for rank in range(tie.above + 1, _last(tie) + 1))
        for tie in ties
    )


def _last(tie: _Tie) -> int:
    return min(tie.above + tie.size, _CUT)
