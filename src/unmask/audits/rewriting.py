"""Measures of corruptions that delete, infill or move text.

No such rule reads ids, so the same draw is repeated on rows in which every free token has its own number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, exp, factorial

import numpy as np

from unmask.audits.finding import (
    SIGMAS,
    Expected,
    Finding,
    FindingUnit,
    Numbers,
    informational,
    plural,
    ratio,
    violation,
)
from unmask.audits.rows import AuditBatch, MeasureOutput, to_mask, unit_starts
from unmask.audits.selection import MEAN_TOLERANCE, RATE_TOLERANCE, compare_lengths
from unmask.core.ragged import row_sums
from unmask.core.records import Bools, Ints, RowBatch, UnitFlag, UnitKind
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion

MAX_SPAN_LENGTH = 12
"""Longer spans share the last bin of a histogram."""
_ADDED = -1


def source_positions(batch: AuditBatch, corrupt: Corruption) -> Ints:
    """The original position of every input token; -1 for a new or special one."""
    example = batch.example
    number = np.arange(len(example.ids), dtype=np.int32) + batch.vocab.size
    twin = replace(example, ids=np.where(example.protected, example.ids, number))
    shown = corrupt(twin, batch.vocab, batch.key).inputs.ids.astype(np.int64) - batch.vocab.size
    return np.where(shown >= 0, shown, _ADDED)


@dataclass(frozen=True, slots=True)
class InputLength:
    """The length of inputs relative to the text, and whether all special tokens are kept."""

    def count(self, batch: AuditBatch) -> Numbers:
        """Input tokens, tokens of the text, special tokens missing or added."""
        inputs, example, vocab = batch.instance.inputs, batch.example, batch.vocab
        framing = [
            row_sums(np.isin(ids, (vocab.cls, vocab.sep)), rows)
            for ids, rows in ((inputs.ids, inputs.rows), (example.ids, example.rows))
        ]
        return np.array([len(inputs.ids), len(example.ids), np.abs(framing[0] - framing[1]).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The length without an expectation; special tokens are neither lost nor added."""
        yield informational("inputs against text, in tokens", ratio(total[0], total[1]), FindingUnit.SHARE)
        yield violation("special tokens touched", total[2])


@dataclass(frozen=True, slots=True)
class RemovedSpans:
    """T5: tokens removed in spans."""

    rule: SpanCorruption

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, free tokens, removed, expected removed, then span lengths as found and as expected."""
        example = batch.example
        free, rows = (
            np.flatnonzero(~example.protected),
            np.append(0, np.cumsum(row_sums(~example.protected, example.rows))),
        )
        gone = ~to_mask(len(example.ids), _shown_positions(batch, self.rule))[free]
        lengths = _run_lengths(gone, rows)
        size = np.diff(rows)
        noise = np.minimum(np.clip(np.rint(size * self.rule.rate), 1, np.maximum(size - 1, 1)), size).astype(np.int64)
        parts = np.minimum(np.rint(noise / self.rule.mean_span_length), np.minimum(noise, size - noise))
        parts = np.clip(parts, 1, np.maximum(len(batch.vocab.sentinels) - _num_free_segments(example), 1)).astype(
            np.int64
        )
        counted = np.bincount(np.minimum(lengths, MAX_SPAN_LENGTH), minlength=MAX_SPAN_LENGTH + 1)
        sums = [len(example), len(free), gone.sum(), noise.sum(), parts.sum(), len(lengths)]
        return np.concatenate([sums, counted, expected_cut_lengths(noise, parts, MAX_SPAN_LENGTH)]).astype(np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The removed fraction, the mean span length, and all lengths."""
        rows, free, gone, noise, parts, found = total[:6]
        counted, expected = total[6 : 7 + MAX_SPAN_LENGTH], total[7 + MAX_SPAN_LENGTH :]
        yield Finding(
            "text removed", ratio(gone, free), Expected(ratio(noise, free), RATE_TOLERANCE), FindingUnit.SHARE
        )
        yield informational("spans in a row", ratio(found, rows), FindingUnit.MEAN)
        yield Finding(
            "span length, mean", ratio(gone, found), Expected(ratio(noise, parts), MEAN_TOLERANCE), FindingUnit.MEAN
        )
        yield from list(
            compare_lengths("span length in tokens", 1, counted[1:], expected[1:] / max(expected.sum(), 1))
        )[1:]


@dataclass(frozen=True, slots=True)
class InfillMasks:
    """BART: spans of units, each replaced by one mask."""

    rule: TextInfilling

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, units, hidden, expected hidden, masks, masks split at a special token, lengths found and expected."""
        example = batch.example
        starts = (
            unit_starts(example, self.rule.layer) if self.rule.layer is not UnitKind.TOKEN else True
        ) & ~example.protected
        source = source_positions(batch, self.rule)
        hidden = starts & ~to_mask(len(example.ids), source[source >= 0])
        units = row_sums(starts, example.rows)
        budget = np.ceil(units * self.rule.rate - 1e-9).astype(np.int64)
        lengths, masks, cut = _isolated_masks(batch, source, hidden)
        counted = np.bincount(np.minimum(lengths, MAX_SPAN_LENGTH), minlength=MAX_SPAN_LENGTH + 1)
        sums = [len(example), units.sum(), hidden.sum(), budget.sum(), masks, cut]
        return np.concatenate(
            [sums, counted, expected_covering_lengths(budget, self.rule.mean_span_length, MAX_SPAN_LENGTH)]
        ).astype(np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The fraction of hidden units, the mean number of units per mask, and all lengths."""
        rows, units, hidden, budget, masks, cut = total[:6]
        counted, expected = total[6 : 7 + MAX_SPAN_LENGTH], total[7 + MAX_SPAN_LENGTH :]
        name, spans = plural(self.rule.layer), expected.sum()
        slack = max(MEAN_TOLERANCE, SIGMAS * ratio(self.rule.mean_span_length, spans) ** 0.5) + ratio(
            hidden, spans
        ) * ratio(cut, spans)
        yield Finding(
            f"{name} hidden", ratio(hidden, units), Expected(ratio(budget, units), RATE_TOLERANCE), FindingUnit.SHARE
        )
        yield informational("masks in a row", ratio(masks, rows), FindingUnit.MEAN)
        yield Finding(
            f"{name} per mask, mean", ratio(hidden, masks), Expected(ratio(budget, spans), slack), FindingUnit.MEAN
        )
        yield from list(compare_lengths(f"{name} per mask", 0, counted, expected / max(spans, 1e-9)))[1:]


@dataclass(frozen=True, slots=True)
class Deletions:
    """BART: deleted tokens."""

    rule: TokenDeletion

    def count(self, batch: AuditBatch) -> Numbers:
        """Free tokens, deleted, expected deleted."""
        size = row_sums(~batch.example.protected, batch.example.rows)
        wanted = np.clip(np.maximum(np.rint(size * self.rule.rate), 1), 0, np.maximum(size - 1, 0))
        return np.array(
            [size.sum(), size.sum() - len(_shown_positions(batch, self.rule)), wanted.sum()], dtype=np.float64
        )

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The deleted fraction."""
        yield Finding(
            "text deleted",
            ratio(total[1], total[0]),
            Expected(ratio(total[2], total[0]), RATE_TOLERANCE),
            FindingUnit.SHARE,
        )


@dataclass(frozen=True, slots=True)
class Reordered:
    """Text that is moved. `apart` is the unit that stays together."""

    rule: Corruption
    may_split: UnitKind

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, changed rows, free tokens, tokens lost or doubled, splits inside a unit."""
        example, source = batch.example, source_positions(batch, self.rule)
        free = int((~example.protected).sum())
        lost = free - len(np.unique(source[source >= 0]))
        changed = row_sums(batch.instance.inputs.ids != example.ids, example.rows) > 0
        torn = (np.diff(source) != 1) & (source[1:] >= 0)
        inner = (example.units.bits[source[1:]] & UnitFlag.SENTENCE) == 0
        return np.array([len(example), changed.sum(), free, lost, (torn & inner).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """No token is lost; the number of changed rows depends on the text."""
        rows, changed, _, lost, torn = total
        yield informational("rows that changed", ratio(changed, rows), FindingUnit.SHARE)
        yield violation("tokens lost or doubled", lost)
        if self.may_split is UnitKind.SENTENCE:
            yield violation("sentences torn apart", torn)


def _shown_positions(batch: AuditBatch, corrupt: Corruption) -> Ints:
    """The positions of the text that are kept."""
    source = source_positions(batch, corrupt)
    return source[source >= 0]


def _run_lengths(flags: Bools, rows: Ints) -> Ints:
    """The lengths of the runs of flags inside rows."""
    edge = flags.copy()
    edge[1:] &= ~flags[:-1]
    heads = rows[:-1][np.diff(rows) > 0]
    edge[heads] = flags[heads]
    number = np.cumsum(edge)[flags]
    return np.bincount(number)[1:].astype(np.int64)


def _num_free_segments(example: RowBatch) -> Ints:
    """The number of runs of free text in each row."""
    free = ~example.protected
    opens = free.copy()
    opens[1:] &= ~(free[:-1] & (example.document[1:] == example.document[:-1]))
    opens[1:] |= free[1:] & (example.segment[1:] != example.segment[:-1])
    heads = example.rows[:-1][example.lengths > 0]
    opens[heads] = free[heads]
    return row_sums(opens, example.rows)


def _isolated_masks(batch: AuditBatch, source: Ints, hidden: Bools) -> tuple[Ints, int, int]:
    """The hidden units of each mask between two tokens of text; all masks; masks split at a special token.

    Adjacent masks cannot be told apart, but lengths do not depend on position, so single ones are a fair sample.
    """
    ids = batch.instance.inputs.ids
    masked = (ids == batch.vocab.mask) & (source < 0)
    at = np.flatnonzero(masked[1:-1] & (source[:-2] >= 0) & (source[2:] >= 0)) + 1
    before = np.append(0, np.cumsum(hidden))
    lengths = before[source[at + 1]] - before[source[at - 1] + 1]
    cut = masked[:-2] & ~masked[1:-1] & (source[1:-1] < 0) & masked[2:]
    return lengths.astype(np.int64), int(masked.sum()), int(cut.sum())


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
