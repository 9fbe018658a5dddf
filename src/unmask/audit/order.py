"""Measures of a fragment (MASS) and of a drawn order (XLNet): one piece or many, and who comes after whom.

What arrives: batches that ask for tokens where they stood. What leaves: findings.
What never happens here: the shares of what is shown; those are measured in `shown.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audit.batch import Batch, asked, count_in_rows, mark
from unmask.audit.cloze import RATE
from unmask.audit.finding import Finding, Numbers, Unit, Within, never, ratio, share, told
from unmask.audit.measure import Said
from unmask.corrupt.fragment import Fragment
from unmask.corrupt.order import Order
from unmask.ragged import row_sums
from unmask.records import Ints, Ordering


@dataclass(frozen=True, slots=True)
class Piece:
    """One fragment in each row, and where it lies."""

    rule: Fragment

    def count(self, batch: Batch) -> Numbers:
        """Rows, free tokens, asked, expected, rows in several pieces, then places as found and as expected."""
        free, hidden, first, runs = _layout(batch)
        wanted = np.minimum(np.maximum(np.rint(free * self.rule.share), 1), free)
        room = free - hidden
        begins, ends = first == 0, (first == room) & (room > 0)
        front, back, anywhere = self.rule.place
        open_ = room > 0
        by_chance = np.where(open_, anywhere / (room + 1), 0)
        expected = np.where(open_, front + by_chance, 1.0).sum(), np.where(open_, back + by_chance, 0.0).sum()
        sums = len(free), free.sum(), hidden.sum(), wanted.sum(), (runs != 1).sum(), begins.sum(), ends.sum()
        return np.array([*sums, *expected], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share, one piece a row, and how often it lies at an edge."""
        rows, free, hidden, wanted, broken, front, back, at_front, at_back = total
        yield Finding("text in the fragment", ratio(hidden, free), Within(ratio(wanted, free), RATE), Unit.SHARE)
        yield never("rows with more than one fragment", broken)
        yield share("fragments at the beginning", front, rows, ratio(at_front, rows), rows)
        yield share("fragments at the end", back, rows, ratio(at_back, rows), rows)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The tokens that are asked for, and the order in which they are."""

    rule: Order

    def count(self, batch: Batch) -> Numbers:
        """Free tokens, asked, expected, runs, rows whose ranks are no order, first ranks left of the middle."""
        target = batch.instance.targets[0]
        assert isinstance(target, Ordering)
        free, hidden, _, runs = _layout(batch)
        wanted = np.minimum(np.maximum(np.rint(free * self.rule.share), 1), free)
        asked_rows = np.append(0, np.cumsum(hidden))
        rank = target.rank[target.positions].astype(np.int64)
        line = np.repeat(np.arange(len(hidden)), hidden)
        order = np.lexsort((rank, line))
        wrong = rank[order] != np.arange(len(rank)) - asked_rows[line]
        bad = row_sums(wrong, asked_rows) > 0
        rises = (np.diff(rank) > 0) & (np.diff(line) == 0)
        sums = free.sum(), hidden.sum(), wanted.sum(), runs.sum(), bad.sum(), rises.sum(), (np.diff(line) == 0).sum()
        return np.array(sums, dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share of targets, ranks that are an order, and one that is random: neighbours rise half of the time."""
        free, hidden, wanted, runs, bad, rises, pairs = total
        yield Finding("text asked for", ratio(hidden, free), Within(ratio(wanted, free), RATE), Unit.SHARE)
        yield told("length of a run of targets, mean", ratio(hidden, runs), Unit.MEAN)
        yield never("rows whose ranks are no order", bad)
        yield share("neighbours said from left to right", rises, pairs, 0.5, pairs)


def _layout(batch: Batch) -> tuple[Ints, Ints, Ints, Ints]:
    """For each row, counted in free tokens: how many there are, are asked for, the first of these, and the runs."""
    example = batch.example
    free = ~example.fixed
    rows = np.append(0, np.cumsum(row_sums(free, example.rows)))
    hidden = mark(len(example.ids), asked(batch).positions)[free]
    opens = hidden.copy()
    opens[1:] &= ~hidden[:-1]
    heads = rows[:-1][np.diff(rows) > 0]
    opens[heads] = hidden[heads]
    at = np.append(np.flatnonzero(hidden), len(hidden))
    first = at[np.searchsorted(at, rows[:-1])] - rows[:-1]
    return np.diff(rows), count_in_rows(example, asked(batch).positions), first, row_sums(opens, rows)
