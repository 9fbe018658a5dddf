"""Measures of a selection: how much is chosen, within which budget, on which borders, in which lengths.

What arrives: batches whose first target is a cloze. What leaves: findings, and the histogram of run lengths.
What never happens here: asking the selection. It is measured from the targets, against the numbers it declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from unmask.audits.finding import (
    SIGMAS,
    Expected,
    Finding,
    FindingUnit,
    Histogram,
    Numbers,
    informational,
    labelled_by_target,
    plural,
    ratio,
    sampling_tolerance,
    violation,
)
from unmask.audits.rows import (
    AuditBatch,
    MeasureOutput,
    audited_tokens,
    cloze_spans,
    count_in_rows,
    row_of,
    to_mask,
    unit_starts,
)
from unmask.core.ragged import row_sums
from unmask.core.records import Ints, RowBatch, UnitKind
from unmask.data.corrupt.selection import OneOfSelectors, RandomTokens, Selector, WholeUnits, mask_budgets

RATE_TOLERANCE = 0.005
"""A rate may be half a point off: whole units rarely add up to the budget."""
SHARE_TOLERANCE = 0.01
"""A share of a length law may be one point off, a mean five hundredths: breaks in the text bend the law a little."""
MEAN_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class MaskRate:
    """The share of all tokens that is chosen."""

    select: Selector

    def count(self, batch: AuditBatch) -> Numbers:
        """Tokens, chosen, what the rule asks for, and the squared gap of each row."""
        lengths = batch.example.lengths
        chosen = count_in_rows(batch.example, audited_tokens(batch).positions)
        asks = _expected_tokens(self.select, batch.example)
        gap = ((chosen - asks) ** 2).sum()
        return np.array([lengths.sum(), chosen.sum(), asks.sum(), gap], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Half a point, or what the rows differ among themselves. Rounded budgets are a little off the rate itself."""
        tokens, chosen, asks, gap = total
        rule = Expected(ratio(asks, tokens), max(RATE_TOLERANCE, SIGMAS * sqrt(gap) / max(tokens, 1)))
        yield Finding(
            labelled_by_target("tokens chosen", self.select.rate), ratio(chosen, tokens), rule, FindingUnit.SHARE
        )


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """Rows that choose more than they may, or nothing at all."""

    select: Selector

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows over budget, and rows with free tokens but no question."""
        example, spans = batch.example, cloze_spans(batch)
        chosen, budget = count_in_rows(example, audited_tokens(batch).positions), _token_budgets(self.select, example)
        if _is_one_by_one(self.select):
            allowed = np.maximum(budget, _shortest_unit(self.select, example))
        else:
            allowed = budget + _longest_run(example, batch) - 1
        free = row_sums(~example.protected, example.rows)
        empty = (free > 0) & (count_in_rows(example, spans.start) == 0)
        return np.array([(chosen > allowed).sum(), empty.sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Neither may happen. The last run of a row is kept whole, so runs may exceed a budget by less than one."""
        kind = "rows over budget" if _is_one_by_one(self.select) else "rows over budget by a run or more"
        yield violation(kind, total[0])
        yield violation("rows with an empty cloze", total[1])


@dataclass(frozen=True, slots=True)
class WholeUnitsCheck:
    """Units of a layer that are chosen in part. A selection of tokens may do that, a selection of units may not."""

    unit_kind: UnitKind
    is_checked: bool

    def count(self, batch: AuditBatch) -> Numbers:
        """Units touched, and units touched in part."""
        example = batch.example
        start = np.flatnonzero(unit_starts(example, self.unit_kind))
        chosen = to_mask(len(example.ids), audited_tokens(batch).positions)
        hidden = np.add.reduceat(chosen, start, dtype=np.int64)
        size = np.diff(start, append=len(chosen))
        return np.array([(hidden > 0).sum(), ((hidden > 0) & (hidden < size)).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The share of the touched units that is half hidden."""
        name = f"{plural(self.unit_kind)} left half-masked"
        part = ratio(total[1], total[0])
        yield (
            Finding(name, part, Expected(0.0), FindingUnit.SHARE)
            if self.is_checked
            else informational(name, part, FindingUnit.SHARE)
        )


@dataclass(frozen=True, slots=True)
class SpecialTokensCheck:
    """Special tokens that were hidden, asked for or changed."""

    def count(self, batch: AuditBatch) -> Numbers:
        """How many."""
        example = batch.example
        touched = batch.instance.inputs.ids != example.ids
        touched[audited_tokens(batch).positions] = True
        return np.array([(touched & example.protected).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """None may be touched."""
        yield violation("special tokens touched", total[0])


@dataclass(frozen=True, slots=True)
class RunLengths:
    """How many units each selection took, against the law of their number.

    A row whose budget cannot hold the longest run draws shorter ones; only the others are held to the law.
    """

    units: WholeUnits

    def count(self, batch: AuditBatch) -> Numbers:
        """How often each length came; the last number counts longer ones."""
        example, spans, most = batch.example, cloze_spans(batch), len(self.units.run_lengths)
        starts = unit_starts(example, self.units.layer)
        before = np.append(0, np.cumsum(starts))
        taken = before[spans.end] - before[spans.start]
        free = ~example.protected
        size = row_sums(free, example.rows) / np.maximum(row_sums(free & starts, example.rows), 1)
        roomy = self.units.rate * example.lengths >= most * size
        taken = taken[roomy[row_of(example, spans.start)]]
        return np.bincount(np.minimum(taken, most + 1), minlength=most + 2)[1:].astype(np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The largest gap of a share, the mean, and the histogram."""
        yield from compare_lengths(
            f"run length in {plural(self.units.layer)}", 1, total, np.append(self.units.run_lengths, 0.0)
        )


def compare_lengths(name: str, first: int, counts: Numbers, expected_shares: Numbers) -> MeasureOutput:
    """Counted lengths (from `first` up) against a law: the mean, the largest gap of a share, the histogram."""
    drawn = counts.sum()
    if not drawn:
        return
    length, shares = np.arange(first, first + len(expected_shares)), counts / drawn
    mean = float(expected_shares @ length)
    spread = sqrt(float(expected_shares @ (length - mean) ** 2) / drawn)
    gap = np.abs(shares - expected_shares)
    worst = int(gap.argmax())
    slack = max(SHARE_TOLERANCE, sampling_tolerance(float(expected_shares[worst]), float(drawn)))
    yield Finding(
        f"{name}, mean", float(shares @ length), Expected(mean, max(MEAN_TOLERANCE, SIGMAS * spread)), FindingUnit.MEAN
    )
    yield Finding(f"{name}, largest gap", float(gap[worst]), Expected(0.0, slack), FindingUnit.SHARE)
    yield Histogram(name, first, tuple(shares.tolist()), tuple(expected_shares.tolist()), int(drawn))


def _is_one_by_one(select: Selector) -> bool:
    """Whether it takes tokens or units one by one, so that the budget is a hard limit."""
    if isinstance(select, OneOfSelectors):
        return all(_is_one_by_one(inner) for inner in select.selectors)
    return isinstance(select, RandomTokens) or (isinstance(select, WholeUnits) and len(select.run_lengths) == 1)


def _expected_tokens(select: Selector, example: RowBatch) -> Numbers:
    """How many tokens the rule asks for in each row."""
    if isinstance(select, OneOfSelectors):
        inner = zip(select.selectors, select.probabilities, strict=True)
        return np.asarray(sum(share * _expected_tokens(one, example) for one, share in inner), dtype=np.float64)
    if _is_one_by_one(select):
        return np.minimum(_token_budgets(select, example), row_sums(~example.protected, example.rows)).astype(
            np.float64
        )
    return np.asarray(select.rate * example.lengths, dtype=np.float64)


def _token_budgets(select: Selector, example: RowBatch) -> Ints:
    """The most tokens that each row may choose: for a mixture, that of the selection with the largest budget."""
    if isinstance(select, OneOfSelectors):
        return _elementwise_max([_token_budgets(one, example) for one in select.selectors])
    if isinstance(select, RandomTokens):
        return mask_budgets(example.lengths, select.rate, select.max_predictions)
    if _is_one_by_one(select):
        return mask_budgets(example.lengths, select.rate)
    return np.asarray(np.maximum(np.ceil(select.rate * example.lengths), 1), dtype=np.int64)


def _elementwise_max(each: list[Ints]) -> Ints:
    return np.asarray(np.stack(each).max(axis=0), dtype=np.int64)


def _shortest_unit(select: Selector, example: RowBatch) -> Ints:
    """The tokens of the shortest unit of each row: a row in which nothing fits takes that one."""
    if isinstance(select, OneOfSelectors):
        return _elementwise_max([_shortest_unit(one, example) for one in select.selectors])
    if not isinstance(select, WholeUnits):
        return np.ones(len(example), dtype=np.int64)
    start = np.flatnonzero(unit_starts(example, select.layer))
    size = np.where(example.protected[start], 0x7FFFFFFF, np.diff(start, append=len(example.ids)))
    return np.minimum.reduceat(size, np.searchsorted(start, example.rows[:-1])).astype(np.int64)


def _longest_run(example: RowBatch, batch: AuditBatch) -> Ints:
    """The tokens of the longest run chosen in each row."""
    spans, longest = cloze_spans(batch), np.zeros(len(example), dtype=np.int64)
    np.maximum.at(longest, row_of(example, spans.start), spans.lengths)
    return longest
