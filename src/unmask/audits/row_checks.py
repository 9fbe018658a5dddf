"""Measures of every task: the fill of rows, facts about rows, restoration, and dialogues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audits.finding import (
    AtLeast,
    Expected,
    Finding,
    FindingUnit,
    Numbers,
    informational,
    ratio,
    sampling_tolerance,
    share_finding,
    violation,
)
from unmask.audits.rows import AuditBatch, AuditSource, MeasureOutput
from unmask.core.ragged import row_sums
from unmask.core.records import Bools, DecoderTarget, InputsAndTargets, Ints, PermutedTarget
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.dialogues import QUERY, REPLY, REPLY_FACT, Dialogues
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import MaskingMode, StaticMasking

_VISITS = 40
_WATCHED, _AMONG = 8, 64
"""The number of the longest rows, taken together, whose draws are compared over visits."""


@dataclass(frozen=True, slots=True)
class RowFill:
    """The fraction of text in rows that are padded to the length of the stage."""

    length: int

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, tokens, documents, rows that are too long."""
        lengths = batch.example.lengths
        long = (lengths > self.length).sum()
        return np.array([len(lengths), lengths.sum(), batch.num_documents.sum(), long], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Padding and documents without an expectation; no row is too long."""
        rows, tokens, documents, long = total
        yield informational("padding, if rows are padded", 1 - ratio(tokens, rows * self.length), FindingUnit.SHARE)
        yield informational("documents in a row", ratio(documents, rows), FindingUnit.MEAN)
        yield violation(f"rows above {self.length} tokens", long)


@dataclass(frozen=True, slots=True)
class Restorable:
    """Restoration: the original follows from the inputs and the targets."""

    corrupt: Corruption

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows that are not restored."""
        ids, rows = self.corrupt.restore(batch.instance, batch.vocab)
        if len(rows) != len(batch.example.rows) or (rows != batch.example.rows).any():
            return np.array([len(batch.example)], dtype=np.float64)
        wrong = row_sums(ids != batch.example.ids, rows) > 0
        return np.array([wrong.sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """None is allowed."""
        yield violation("rows not restored exactly", total[0])


@dataclass(frozen=True, slots=True)
class PairFactsCheck:
    """The facts about the two segments of a pair, compared with their documents."""

    pairs: SegmentPairs

    def count(self, batch: AuditBatch) -> Numbers:
        """The count of each value, and of rows that contradict their documents."""
        value = batch.example.facts[next(iter(self.pairs.row_facts))]
        wrong = (batch.num_documents > 1) != self._from_other_document(value)
        return np.append(np.bincount(value, minlength=3), wrong.sum()).astype(np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Half of the true pairs are swapped. More may be random: a single sentence has no continuation."""
        *values, wrong = total
        fact, rows = next(iter(self.pairs.row_facts)), sum(values)
        negative, true = self.pairs.negative, values[0] + values[1]
        if negative is not Negative.RANDOM:
            yield share_finding(f"{fact}: true pairs that are swapped", values[1], true, 0.5, true)
        if negative is not Negative.SWAPPED:
            number, drawn = (values[1], 1 / 2) if negative is Negative.RANDOM else (values[2], 1 / 3)
            limit = AtLeast(drawn, sampling_tolerance(drawn, rows))
            yield Finding(f"{fact}: random pairs", ratio(number, rows), limit, FindingUnit.SHARE)
        yield violation(f"{fact}: pairs their documents contradict", wrong)

    def _from_other_document(self, value: Ints) -> Bools:
        """The rows whose second segment is stated to come from another document."""
        stated = {Negative.RANDOM: 1, Negative.BOTH: 2, Negative.SWAPPED: 3}[self.pairs.negative]
        return np.asarray(value == stated)


def distinct_draws(source: AuditSource, corrupt: Corruption, masking: MaskingMode, strict: bool) -> Finding:
    """The number of different draws of a row over its visits: one per copy, or a new one each time.

    A rule with few outcomes for a row (three sentences have six orders) repeats itself; it is not strict.
    """
    visits = 4 * masking.num_copies if isinstance(masking, StaticMasking) else _VISITS
    expected = masking.num_copies if isinstance(masking, StaticMasking) else visits
    some = min(_AMONG, len(source.plan))
    size = np.add.reduceat(source.plan.length[: source.plan.rows[some]], source.plan.rows[:some])
    watched = np.argsort(-size, kind="stable")[:_WATCHED]
    row, visit = np.tile(watched, visits), np.repeat(np.arange(visits), len(watched))
    instance = source.batch(corrupt, row, source.visits.key_of(row, visit)).instance
    each = [_draw_bytes(instance, number) for number in range(len(row))]
    found = len({tuple(each[first : first + len(watched)]) for first in range(0, len(row), len(watched))})
    name = f"different draws in {visits} visits"
    return (
        Finding(name, found, Expected(expected), FindingUnit.COUNT)
        if strict
        else informational(name, found, FindingUnit.COUNT)
    )


def _draw_bytes(instance: InputsAndTargets, row: int) -> tuple[bytes, ...]:
    """The draw of a row as bytes."""
    inputs, target = instance.inputs, instance.targets[0]
    low, high = inputs.rows[row], inputs.rows[row + 1]
    parts = [inputs.ids[low:high].tobytes()]
    if isinstance(target, PermutedTarget):
        parts.append(target.rank[low:high].tobytes())
    if isinstance(target, DecoderTarget):
        parts.append(target.ids[target.rows[row] : target.rows[row + 1]].tobytes())
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class DialogueCheck:
    """Real and fake turns, compared with the documents of a row."""

    dialogues: Dialogues

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, fake ones, contradictions, turns, replies, tokens without a speaker, wrong turn counts."""
        example = batch.example
        fake = example.facts[REPLY_FACT] != 0
        wrong = (batch.num_documents > 1) != fake
        ends = example.protected & (np.arange(len(example.ids)) != np.repeat(example.rows[:-1], example.lengths))
        turns = row_sums(ends, example.rows)
        odd = (turns < 2) | (turns > self.dialogues.max_turns)
        speakerless = ~np.isin(example.segment, (QUERY, REPLY))
        sums = (
            len(fake),
            fake.sum(),
            wrong.sum(),
            turns.sum(),
            (ends & (example.segment == REPLY)).sum(),
            speakerless.sum(),
        )
        return np.array([*sums, odd.sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The declared fraction of fake rows, without contradictions."""
        rows, fake, wrong, turns, replies, speakerless, odd = total
        yield informational("turns in a row", ratio(turns, rows), FindingUnit.MEAN)
        yield informational("turns of the replying speaker", ratio(replies, turns), FindingUnit.SHARE)
        yield share_finding(f"{REPLY_FACT}: rows with a fake turn", fake, rows, self.dialogues.fake_fraction, rows)
        yield violation(f"{REPLY_FACT}: rows their documents contradict", wrong)
        yield violation("rows with too few or too many turns", odd)
        yield violation("tokens without a speaker", speakerless)
