"""Measures of a selection: rate, budget, unit borders and run lengths.

They are computed from the cloze targets and compared with the declared numbers.
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
from unmask.data.corrupt.masking import OneOfSelectors, RandomTokens, Selector, WholeUnits, mask_budgets

RATE_TOLERANCE = 0.005
"""The tolerance of a rate: whole units rarely sum to the budget."""
SHARE_TOLERANCE = 0.01
"""The tolerances of a length distribution and of its mean: breaks in the text shift both a little."""
MEAN_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class MaskRate:
    """The fraction of selected tokens."""

    select: Selector

    def count(self, batch: AuditBatch) -> Numbers:
        """Tokens, selected, expected, and the squared gap of each row."""
        lengths = batch.example.lengths
        chosen = count_in_rows(batch.example, audited_tokens(batch).positions)
        expected = _expected_tokens(self.select, batch.example)
        gap = ((chosen - expected) ** 2).sum()
        return np.array([lengths.sum(), chosen.sum(), expected.sum(), gap], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Half a point, or the variation among rows. Rounded budgets deviate a little from the rate."""
        tokens, chosen, expected, gap = total
        rule = Expected(ratio(expected, tokens), max(RATE_TOLERANCE, SIGMAS * sqrt(gap) / max(tokens, 1)))
        yield Finding(
            labelled_by_target("tokens chosen", self.select.rate), ratio(chosen, tokens), rule, FindingUnit.SHARE
        )


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """Rows that exceed their budget or select nothing."""

    select: Selector

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows over budget, and rows with free tokens but no selection."""
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
        """Neither is allowed. The last run of a row is kept whole and may exceed the budget by less than one run."""
        kind = "rows over budget" if _is_one_by_one(self.select) else "rows over budget by a run or more"
        yield violation(kind, total[0])
        yield violation("rows with an empty cloze", total[1])


@dataclass(frozen=True, slots=True)
class WholeUnitsCheck:
    """Units that are selected in part; allowed for a selection of tokens, not of units."""

    unit_kind: UnitKind
    is_checked: bool

    def count(self, batch: AuditBatch) -> Numbers:
        """Selected units, and those selected in part."""
        example = batch.example
        start = np.flatnonzero(unit_starts(example, self.unit_kind))
        chosen = to_mask(len(example.ids), audited_tokens(batch).positions)
        hidden = np.add.reduceat(chosen, start, dtype=np.int64)
        size = np.diff(start, append=len(chosen))
        return np.array([(hidden > 0).sum(), ((hidden > 0) & (hidden < size)).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The fraction of selected units that are split."""
        name = f"{plural(self.unit_kind)} left half-masked"
        part = ratio(total[1], total[0])
        yield (
            Finding(name, part, Expected(0.0), FindingUnit.SHARE)
            if self.is_checked
            else informational(name, part, FindingUnit.SHARE)
        )


@dataclass(frozen=True, slots=True)
class SpecialTokensCheck:
    """Special tokens that were masked, predicted or changed."""

    def count(self, batch: AuditBatch) -> Numbers:
        """The number of such tokens."""
        example = batch.example
        touched = batch.instance.inputs.ids != example.ids
        touched[audited_tokens(batch).positions] = True
        return np.array([(touched & example.protected).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """None is allowed."""
        yield violation("special tokens touched", total[0])


@dataclass(frozen=True, slots=True)
class RunLengths:
    """The number of units in each selected run, compared with its distribution.

    A row whose budget cannot fit the longest run draws shorter ones; only the others are compared.
    """

    units: WholeUnits

    def count(self, batch: AuditBatch) -> Numbers:
        """The count of each length; the last number counts longer ones."""
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
        """The largest gap of a fraction, the mean, and the histogram."""
        yield from compare_lengths(
            f"run length in {plural(self.units.layer)}", 1, total, np.append(self.units.run_lengths, 0.0)
        )


def compare_lengths(name: str, first: int, counts: Numbers, expected_shares: Numbers) -> MeasureOutput:
    """Counted lengths (from `first` up) and a distribution: mean, largest gap, histogram."""
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
    """Whether it selects single tokens or units, so that the budget is a hard limit."""
    if isinstance(select, OneOfSelectors):
        return all(_is_one_by_one(inner) for inner in select.selectors)
    return isinstance(select, RandomTokens) or (isinstance(select, WholeUnits) and len(select.run_lengths) == 1)


def _expected_tokens(select: Selector, example: RowBatch) -> Numbers:
    """The expected number of selected tokens in each row."""
    if isinstance(select, OneOfSelectors):
        inner = zip(select.selectors, select.probabilities, strict=True)
        return np.asarray(sum(share * _expected_tokens(one, example) for one, share in inner), dtype=np.float64)
    if _is_one_by_one(select):
        return np.minimum(_token_budgets(select, example), row_sums(~example.protected, example.rows)).astype(
            np.float64
        )
    return np.asarray(select.rate * example.lengths, dtype=np.float64)


def _token_budgets(select: Selector, example: RowBatch) -> Ints:
    """The largest number of selected tokens in each row: for a mixture, that of the largest budget."""
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
    """The length of the shortest unit of each row, which is selected if nothing fits."""
    if isinstance(select, OneOfSelectors):
        return _elementwise_max([_shortest_unit(one, example) for one in select.selectors])
    if not isinstance(select, WholeUnits):
        return np.ones(len(example), dtype=np.int64)
    start = np.flatnonzero(unit_starts(example, select.layer))
    size = np.where(example.protected[start], 0x7FFFFFFF, np.diff(start, append=len(example.ids)))
    return np.minimum.reduceat(size, np.searchsorted(start, example.rows[:-1])).astype(np.int64)


def _longest_run(example: RowBatch, batch: AuditBatch) -> Ints:
    """The length of the longest selected run of each row."""
    spans, longest = cloze_spans(batch), np.zeros(len(example), dtype=np.int64)
    np.maximum.at(longest, row_of(example, spans.start), spans.lengths)
    return longest
