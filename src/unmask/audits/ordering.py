"""Measures of a fragment (MASS) and of a prediction order (XLNet).

Fractions of replacements are in `replacement.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audits.finding import (
    Expected,
    Finding,
    FindingUnit,
    Numbers,
    informational,
    ratio,
    share_finding,
    violation,
)
from unmask.audits.rows import AuditBatch, MeasureOutput, audited_tokens, count_in_rows, to_mask
from unmask.audits.selection import RATE_TOLERANCE
from unmask.core.ragged import row_sums
from unmask.core.records import Ints, PermutedTarget
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.mass_fragment import MassFragment


@dataclass(frozen=True, slots=True)
class FragmentCheck:
    """One fragment in each row, and its position."""

    rule: MassFragment

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, free tokens, predicted, expected, rows in several pieces, then positions as found and as expected."""
        free, hidden, first, runs = _layout(batch)
        wanted = np.minimum(np.maximum(np.rint(free * self.rule.fraction), 1), free)
        room = free - hidden
        begins, ends = first == 0, (first == room) & (room > 0)
        front, back, anywhere = self.rule.place_probabilities
        open_ = room > 0
        by_chance = np.where(open_, anywhere / (room + 1), 0)
        expected = np.where(open_, front + by_chance, 1.0).sum(), np.where(open_, back + by_chance, 0.0).sum()
        sums = len(free), free.sum(), hidden.sum(), wanted.sum(), (runs != 1).sum(), begins.sum(), ends.sum()
        return np.array([*sums, *expected], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The fraction, one piece a row, and how often it is at an edge."""
        rows, free, hidden, wanted, broken, front, back, at_front, at_back = total
        yield Finding(
            "text in the fragment",
            ratio(hidden, free),
            Expected(ratio(wanted, free), RATE_TOLERANCE),
            FindingUnit.SHARE,
        )
        yield violation("rows with more than one fragment", broken)
        yield share_finding("fragments at the beginning", front, rows, ratio(at_front, rows), rows)
        yield share_finding("fragments at the end", back, rows, ratio(at_back, rows), rows)


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """The predicted tokens and their order."""

    rule: PermutationOrder

    def count(self, batch: AuditBatch) -> Numbers:
        """Free tokens, predicted, expected, runs, rows with invalid ranks, first ranks in the left half."""
        target = batch.instance.targets[0]
        assert isinstance(target, PermutedTarget)
        free, hidden, _, runs = _layout(batch)
        wanted = np.minimum(np.maximum(np.rint(free * self.rule.target_fraction), 1), free)
        asked_rows = np.append(0, np.cumsum(hidden))
        rank = target.rank[target.positions].astype(np.int64)
        line = np.repeat(np.arange(len(hidden)), hidden)
        order = np.lexsort((rank, line))
        wrong = rank[order] != np.arange(len(rank)) - asked_rows[line]
        bad = row_sums(wrong, asked_rows) > 0
        rises = (np.diff(rank) > 0) & (np.diff(line) == 0)
        sums = free.sum(), hidden.sum(), wanted.sum(), runs.sum(), bad.sum(), rises.sum(), (np.diff(line) == 0).sum()
        return np.array(sums, dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The fraction of targets, valid ranks, and a random order: adjacent ranks increase half of the time."""
        free, hidden, wanted, runs, bad, rises, pairs = total
        yield Finding(
            "predicted tokens", ratio(hidden, free), Expected(ratio(wanted, free), RATE_TOLERANCE), FindingUnit.SHARE
        )
        yield informational("length of a run of targets, mean", ratio(hidden, runs), FindingUnit.MEAN)
        yield violation("rows whose ranks are no order", bad)
        yield share_finding("adjacent tokens predicted from left to right", rises, pairs, 0.5, pairs)


def _layout(batch: AuditBatch) -> tuple[Ints, Ints, Ints, Ints]:
    """For each row, in free tokens: the number, the predicted, the first predicted, and the runs."""
    example = batch.example
    free = ~example.protected
    rows = np.append(0, np.cumsum(row_sums(free, example.rows)))
    hidden = to_mask(len(example.ids), audited_tokens(batch).positions)[free]
    opens = hidden.copy()
    opens[1:] &= ~hidden[:-1]
    heads = rows[:-1][np.diff(rows) > 0]
    opens[heads] = hidden[heads]
    at = np.append(np.flatnonzero(hidden), len(hidden))
    first = at[np.searchsorted(at, rows[:-1])] - rows[:-1]
    return np.diff(rows), count_in_rows(example, audited_tokens(batch).positions), first, row_sums(opens, rows)
