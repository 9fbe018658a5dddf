"""Measures of rules that rewrite a text or order it: how much goes, in how many pieces, and what moves.

What arrives: batches, and the rule that made them. What leaves: findings.
What never happens here: guessing where a shown token came from. No such rule looks at ids, so the same draw is made
once more on rows in which every free token bears its own number, and the numbers tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unmask.audit.batch import Batch, begins, mark
from unmask.audit.cloze import MEAN, RATE, against
from unmask.audit.finding import SIGMAS, Finding, Numbers, Unit, Within, never, plural, ratio, told
from unmask.audit.laws import covering_lengths, cut_lengths
from unmask.audit.measure import Said
from unmask.corrupt.delete import Delete
from unmask.corrupt.infill import Infill
from unmask.corrupt.part import Corrupt
from unmask.corrupt.sentinels import Sentinels
from unmask.ragged import row_sums
from unmask.records import Bools, Example, Flag, Ints, Layer

LONGEST = 12
"""Longer spans share the last line of a histogram."""
_ADDED = -1


def sources(batch: Batch, corrupt: Corrupt) -> Ints:
    """For every shown token, the position where it stood; -1 for one that was added or is special."""
    example = batch.example
    number = np.arange(len(example.ids), dtype=np.int32) + batch.vocab.size
    twin = replace(example, ids=np.where(example.fixed, example.ids, number))
    shown = corrupt(twin, batch.vocab, batch.key).inputs.ids.astype(np.int64) - batch.vocab.size
    return np.where(shown >= 0, shown, _ADDED)


@dataclass(frozen=True, slots=True)
class Size:
    """How long the inputs are against the text, and whether the special tokens are all still there."""

    def count(self, batch: Batch) -> Numbers:
        """Tokens shown, tokens of the text, special tokens missing or too many."""
        inputs, example, vocab = batch.instance.inputs, batch.example, batch.vocab
        framing = [
            row_sums(np.isin(ids, (vocab.cls, vocab.sep)), rows)
            for ids, rows in ((inputs.ids, inputs.rows), (example.ids, example.rows))
        ]
        return np.array([len(inputs.ids), len(example.ids), np.abs(framing[0] - framing[1]).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """The length is told; a special token may neither go nor come."""
        yield told("inputs against text, in tokens", ratio(total[0], total[1]), Unit.SHARE)
        yield never("special tokens touched", total[2])


@dataclass(frozen=True, slots=True)
class Spans:
    """T5: tokens removed in spans."""

    rule: Sentinels

    def count(self, batch: Batch) -> Numbers:
        """Rows, free tokens, removed, expected removed, then span lengths as found and as expected."""
        example = batch.example
        free, rows = np.flatnonzero(~example.fixed), np.append(0, np.cumsum(row_sums(~example.fixed, example.rows)))
        gone = ~mark(len(example.ids), _seen(batch, self.rule))[free]
        lengths = _runs(gone, rows)
        size = np.diff(rows)
        noise = np.minimum(np.clip(np.rint(size * self.rule.rate), 1, np.maximum(size - 1, 1)), size).astype(np.int64)
        parts = np.minimum(np.rint(noise / self.rule.mean), np.minimum(noise, size - noise))
        parts = np.clip(parts, 1, np.maximum(len(batch.vocab.sentinels) - _stretches(example), 1)).astype(np.int64)
        counted = np.bincount(np.minimum(lengths, LONGEST), minlength=LONGEST + 1)
        sums = [len(example), len(free), gone.sum(), noise.sum(), parts.sum(), len(lengths)]
        return np.concatenate([sums, counted, cut_lengths(noise, parts, LONGEST)]).astype(np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share that goes, the mean length of a span, and all lengths."""
        rows, free, gone, noise, parts, found = total[:6]
        counted, expected = total[6 : 7 + LONGEST], total[7 + LONGEST :]
        yield Finding("text removed", ratio(gone, free), Within(ratio(noise, free), RATE), Unit.SHARE)
        yield told("spans in a row", ratio(found, rows), Unit.MEAN)
        yield Finding("span length, mean", ratio(gone, found), Within(ratio(noise, parts), MEAN), Unit.MEAN)
        yield from list(against("span length in tokens", 1, counted[1:], expected[1:] / max(expected.sum(), 1)))[1:]


@dataclass(frozen=True, slots=True)
class Masks:
    """BART: spans of units, each of which became one mask."""

    rule: Infill

    def count(self, batch: Batch) -> Numbers:
        """Rows, units, hidden, expected hidden, masks, masks cut at a special token, lengths found and expected."""
        example = batch.example
        starts = (begins(example, self.rule.layer) if self.rule.layer is not Layer.TOKEN else True) & ~example.fixed
        source = sources(batch, self.rule)
        hidden = starts & ~mark(len(example.ids), source[source >= 0])
        units = row_sums(starts, example.rows)
        budget = np.ceil(units * self.rule.rate - 1e-9).astype(np.int64)
        lengths, masks, cut = _lone_masks(batch, source, hidden)
        counted = np.bincount(np.minimum(lengths, LONGEST), minlength=LONGEST + 1)
        sums = [len(example), units.sum(), hidden.sum(), budget.sum(), masks, cut]
        return np.concatenate([sums, counted, covering_lengths(budget, self.rule.mean, LONGEST)]).astype(np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share of units hidden, the mean number of units behind a mask, and all lengths."""
        rows, units, hidden, budget, masks, cut = total[:6]
        counted, expected = total[6 : 7 + LONGEST], total[7 + LONGEST :]
        name, spans = plural(self.rule.layer), expected.sum()
        slack = max(MEAN, SIGMAS * ratio(self.rule.mean, spans) ** 0.5) + ratio(hidden, spans) * ratio(cut, spans)
        yield Finding(f"{name} hidden", ratio(hidden, units), Within(ratio(budget, units), RATE), Unit.SHARE)
        yield told("masks in a row", ratio(masks, rows), Unit.MEAN)
        yield Finding(
            f"{name} behind a mask, mean", ratio(hidden, masks), Within(ratio(budget, spans), slack), Unit.MEAN
        )
        yield from list(against(f"{name} behind a mask", 0, counted, expected / max(spans, 1e-9)))[1:]


@dataclass(frozen=True, slots=True)
class Deleted:
    """BART: tokens that vanish."""

    rule: Delete

    def count(self, batch: Batch) -> Numbers:
        """Free tokens, gone, expected gone."""
        size = row_sums(~batch.example.fixed, batch.example.rows)
        wanted = np.clip(np.maximum(np.rint(size * self.rule.rate), 1), 0, np.maximum(size - 1, 0))
        return np.array([size.sum(), size.sum() - len(_seen(batch, self.rule)), wanted.sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """The share that goes."""
        yield Finding("text deleted", ratio(total[1], total[0]), Within(ratio(total[2], total[0]), RATE), Unit.SHARE)


@dataclass(frozen=True, slots=True)
class Moved:
    """Text that changes its place without a loss. `apart` says what may be torn apart: sentences, or anything."""

    rule: Corrupt
    apart: Layer

    def count(self, batch: Batch) -> Numbers:
        """Rows, rows that changed, free tokens, tokens lost or doubled, places torn inside a unit."""
        example, source = batch.example, sources(batch, self.rule)
        free = int((~example.fixed).sum())
        lost = free - len(np.unique(source[source >= 0]))
        changed = row_sums(batch.instance.inputs.ids != example.ids, example.rows) > 0
        torn = (np.diff(source) != 1) & (source[1:] >= 0)
        inner = (example.units.bits[source[1:]] & Flag.SENTENCE) == 0
        return np.array([len(example), changed.sum(), free, lost, (torn & inner).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """Nothing is lost; how many rows look different depends on the text."""
        rows, changed, _, lost, torn = total
        yield told("rows that changed", ratio(changed, rows), Unit.SHARE)
        yield never("tokens lost or doubled", lost)
        if self.apart is Layer.SENTENCE:
            yield never("sentences torn apart", torn)


def _seen(batch: Batch, corrupt: Corrupt) -> Ints:
    """The positions of the text that are still shown."""
    source = sources(batch, corrupt)
    return source[source >= 0]


def _runs(flags: Bools, rows: Ints) -> Ints:
    """The lengths of the runs of flags inside rows."""
    edge = flags.copy()
    edge[1:] &= ~flags[:-1]
    heads = rows[:-1][np.diff(rows) > 0]
    edge[heads] = flags[heads]
    number = np.cumsum(edge)[flags]
    return np.bincount(number)[1:].astype(np.int64)


def _stretches(example: Example) -> Ints:
    """How many stretches of free text each row has."""
    free = ~example.fixed
    opens = free.copy()
    opens[1:] &= ~(free[:-1] & (example.document[1:] == example.document[:-1]))
    opens[1:] |= free[1:] & (example.segment[1:] != example.segment[:-1])
    heads = example.rows[:-1][example.lengths > 0]
    opens[heads] = free[heads]
    return row_sums(opens, example.rows)


def _lone_masks(batch: Batch, source: Ints, hidden: Bools) -> tuple[Ints, int, int]:
    """The units behind each mask that stands between two tokens of text; all masks; masks cut at a special token.

    Two masks side by side cannot be told apart, but lengths do not decide who stands where, so the lone ones are a
    fair sample of all.
    """
    ids = batch.instance.inputs.ids
    masked = (ids == batch.vocab.mask) & (source < 0)
    at = np.flatnonzero(masked[1:-1] & (source[:-2] >= 0) & (source[2:] >= 0)) + 1
    before = np.append(0, np.cumsum(hidden))
    lengths = before[source[at + 1]] - before[source[at - 1] + 1]
    cut = masked[:-2] & ~masked[1:-1] & (source[1:-1] < 0) & masked[2:]
    return lengths.astype(np.int64), int(masked.sum()), int(cut.sum())
