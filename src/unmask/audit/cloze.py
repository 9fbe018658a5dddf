"""Measures of a selection: how much is chosen, within which budget, on which borders, in which lengths.

What arrives: batches whose first target is a cloze. What leaves: findings, and the histogram of run lengths.
What never happens here: asking the selection. It is measured from the targets, against the numbers it declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from unmask.audit.batch import Batch, asked, begins, count_in_rows, drawn_spans, mark, row_of
from unmask.audit.finding import (
    SIGMAS,
    Finding,
    Histogram,
    Numbers,
    Unit,
    Within,
    chance,
    never,
    plural,
    ratio,
    told,
    wanted,
)
from unmask.audit.measure import Said
from unmask.corrupt.select import OneOf, Select, Tokens, Units, budgets
from unmask.ragged import row_sums
from unmask.records import Example, Ints, Layer

RATE = 0.005
"""A rate may be half a point off: whole units rarely add up to the budget."""
SHARE = 0.01
"""A share of a length law may be one point off, a mean five hundredths: breaks in the text bend the law a little."""
MEAN = 0.05


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of all tokens that is chosen."""

    select: Select

    def count(self, batch: Batch) -> Numbers:
        """Tokens, chosen, what the rule asks for, and the squared gap of each row."""
        lengths = batch.example.lengths
        chosen = count_in_rows(batch.example, asked(batch).positions)
        asks = _wanted(self.select, batch.example)
        gap = ((chosen - asks) ** 2).sum()
        return np.array([lengths.sum(), chosen.sum(), asks.sum(), gap], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """Half a point, or what the rows differ among themselves. Rounded budgets are a little off the rate itself."""
        tokens, chosen, asks, gap = total
        rule = Within(ratio(asks, tokens), max(RATE, SIGMAS * sqrt(gap) / max(tokens, 1)))
        yield Finding(wanted("tokens chosen", self.select.rate), ratio(chosen, tokens), rule, Unit.SHARE)


@dataclass(frozen=True, slots=True)
class Budget:
    """Rows that choose more than they may, or nothing at all."""

    select: Select

    def count(self, batch: Batch) -> Numbers:
        """Rows over budget, and rows with free tokens but no question."""
        example, spans = batch.example, drawn_spans(batch)
        chosen, budget = count_in_rows(example, asked(batch).positions), _budget(self.select, example)
        if _single(self.select):
            allowed = np.maximum(budget, _shortest(self.select, example))
        else:
            allowed = budget + _longest(example, batch) - 1
        free = row_sums(~example.fixed, example.rows)
        empty = (free > 0) & (count_in_rows(example, spans.start) == 0)
        return np.array([(chosen > allowed).sum(), empty.sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """Neither may happen. The last run of a row is kept whole, so runs may exceed a budget by less than one."""
        kind = "rows over budget" if _single(self.select) else "rows over budget by a run or more"
        yield never(kind, total[0])
        yield never("rows with an empty cloze", total[1])


@dataclass(frozen=True, slots=True)
class Whole:
    """Units of a layer that are chosen in part. A selection of tokens may do that, a selection of units may not."""

    layer: Layer
    judged: bool

    def count(self, batch: Batch) -> Numbers:
        """Units touched, and units touched in part."""
        example = batch.example
        start = np.flatnonzero(begins(example, self.layer))
        chosen = mark(len(example.ids), asked(batch).positions)
        hidden = np.add.reduceat(chosen, start, dtype=np.int64)
        size = np.diff(start, append=len(chosen))
        return np.array([(hidden > 0).sum(), ((hidden > 0) & (hidden < size)).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share of the touched units that is half hidden."""
        name = f"{plural(self.layer)} left half-masked"
        part = ratio(total[1], total[0])
        yield Finding(name, part, Within(0.0), Unit.SHARE) if self.judged else told(name, part, Unit.SHARE)


@dataclass(frozen=True, slots=True)
class Specials:
    """Special tokens that were hidden, asked for or changed."""

    def count(self, batch: Batch) -> Numbers:
        """How many."""
        example = batch.example
        touched = batch.instance.inputs.ids != example.ids
        touched[asked(batch).positions] = True
        return np.array([(touched & example.fixed).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """None may be touched."""
        yield never("special tokens touched", total[0])


@dataclass(frozen=True, slots=True)
class Runs:
    """How many units each selection took, against the law of their number.

    A row whose budget cannot hold the longest run draws shorter ones; only the others are held to the law.
    """

    units: Units

    def count(self, batch: Batch) -> Numbers:
        """How often each length came; the last number counts longer ones."""
        example, spans, most = batch.example, drawn_spans(batch), len(self.units.run)
        starts = begins(example, self.units.layer)
        before = np.append(0, np.cumsum(starts))
        taken = before[spans.end] - before[spans.start]
        free = ~example.fixed
        size = row_sums(free, example.rows) / np.maximum(row_sums(free & starts, example.rows), 1)
        roomy = self.units.rate * example.lengths >= most * size
        taken = taken[roomy[row_of(example, spans.start)]]
        return np.bincount(np.minimum(taken, most + 1), minlength=most + 2)[1:].astype(np.float64)

    def judge(self, total: Numbers) -> Said:
        """The largest gap of a share, the mean, and the histogram."""
        yield from against(f"run length in {plural(self.units.layer)}", 1, total, np.append(self.units.run, 0.0))


def against(name: str, first: int, counts: Numbers, law: Numbers) -> Said:
    """Counted lengths (from `first` up) against a law: the mean, the largest gap of a share, the histogram."""
    drawn = counts.sum()
    if not drawn:
        return
    length, shares = np.arange(first, first + len(law)), counts / drawn
    mean = float(law @ length)
    spread = sqrt(float(law @ (length - mean) ** 2) / drawn)
    gap = np.abs(shares - law)
    worst = int(gap.argmax())
    slack = max(SHARE, chance(float(law[worst]), float(drawn)))
    yield Finding(f"{name}, mean", float(shares @ length), Within(mean, max(MEAN, SIGMAS * spread)), Unit.MEAN)
    yield Finding(f"{name}, largest gap", float(gap[worst]), Within(0.0, slack), Unit.SHARE)
    yield Histogram(name, first, tuple(shares.tolist()), tuple(law.tolist()), int(drawn))


def _single(select: Select) -> bool:
    """Whether it takes tokens or units one by one, so that the budget is a hard limit."""
    if isinstance(select, OneOf):
        return all(_single(inner) for inner in select.selections)
    return isinstance(select, Tokens) or (isinstance(select, Units) and len(select.run) == 1)


def _wanted(select: Select, example: Example) -> Numbers:
    """How many tokens the rule asks for in each row."""
    if isinstance(select, OneOf):
        inner = zip(select.selections, select.shares, strict=True)
        return np.asarray(sum(share * _wanted(one, example) for one, share in inner), dtype=np.float64)
    if _single(select):
        return np.minimum(_budget(select, example), row_sums(~example.fixed, example.rows)).astype(np.float64)
    return np.asarray(select.rate * example.lengths, dtype=np.float64)


def _budget(select: Select, example: Example) -> Ints:
    """The most tokens that each row may choose: for a mixture, that of the selection with the largest budget."""
    if isinstance(select, OneOf):
        return _largest([_budget(one, example) for one in select.selections])
    if isinstance(select, Tokens):
        return budgets(example.lengths, select.rate, select.most)
    if _single(select):
        return budgets(example.lengths, select.rate)
    return np.asarray(np.maximum(np.ceil(select.rate * example.lengths), 1), dtype=np.int64)


def _largest(each: list[Ints]) -> Ints:
    return np.asarray(np.stack(each).max(axis=0), dtype=np.int64)


def _shortest(select: Select, example: Example) -> Ints:
    """The tokens of the shortest unit of each row: a row in which nothing fits takes that one."""
    if isinstance(select, OneOf):
        return _largest([_shortest(one, example) for one in select.selections])
    if not isinstance(select, Units):
        return np.ones(len(example), dtype=np.int64)
    start = np.flatnonzero(begins(example, select.layer))
    size = np.where(example.fixed[start], 0x7FFFFFFF, np.diff(start, append=len(example.ids)))
    return np.minimum.reduceat(size, np.searchsorted(start, example.rows[:-1])).astype(np.int64)


def _longest(example: Example, batch: Batch) -> Ints:
    """The tokens of the longest run chosen in each row."""
    spans, longest = drawn_spans(batch), np.zeros(len(example), dtype=np.int64)
    np.maximum.at(longest, row_of(example, spans.start), spans.lengths)
    return longest
