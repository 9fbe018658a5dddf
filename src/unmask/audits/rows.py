"""The rows of an audit: planned and corrupted as in training, with positions of targets and units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from unmask.audits.finding import Finding, Histogram, Numbers
from unmask.core.ragged import concat_ranges
from unmask.core.records import (
    Bools,
    Cloze,
    DecoderTarget,
    Ids,
    InputsAndTargets,
    Ints,
    PermutedTarget,
    RowBatch,
    Spans,
    UnitFlag,
    UnitKind,
)
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.row_plan import EpochSampler, InputFormat, MaskingMode, RowPlan, build_rows
from unmask.data.tokenize.vocab import Vocab

BATCH_ROWS = 256
"""Rows in a batch: fast in numpy, small enough for the cache."""


@dataclass(frozen=True, slots=True)
class AuditBatch:
    """Rows before and after the corruption."""

    example: RowBatch
    instance: InputsAndTargets
    vocab: Vocab
    key: Key
    num_documents: Ints
    """The number of documents in each row."""


@dataclass(frozen=True, slots=True)
class AuditedTokens:
    """Predicted tokens: positions, originals, and inputs."""

    positions: Ints
    targets: Ids
    inputs: Ids


@dataclass(frozen=True, slots=True)
class AuditSource:
    """The planned rows of a task over a corpus, for any visit."""

    corpus: Corpus
    examples: InputFormat
    plan: RowPlan
    visits: EpochSampler

    @staticmethod
    def of(corpus: Corpus, examples: InputFormat, length: int, renew: MaskingMode, key: Key) -> AuditSource:
        """Plan the rows."""
        plan = examples.plan(corpus, length, key)
        return AuditSource(corpus, examples, plan, EpochSampler(max(len(plan), 1), renew, key))

    def batches(self, corrupt: Corruption, rows: int) -> Iterator[AuditBatch]:
        """The first visits of the first pass, in batches of `ROWS`; all rows, if there are fewer."""
        total = min(rows, len(self.plan))
        for first in range(0, total, BATCH_ROWS):
            row, key = self.visits(np.arange(first, min(first + BATCH_ROWS, total)))
            yield self.batch(corrupt, row, key)

    def batch(self, corrupt: Corruption, row: Ints, key: Key) -> AuditBatch:
        """Build these rows and corrupt each under its key."""
        example = build_rows(self.corpus, self.plan, row, self.examples.template, self.corpus.vocab)
        instance = corrupt(example, self.corpus.vocab, key)
        return AuditBatch(example, instance, self.corpus.vocab, key, _documents_per_row(self.corpus, self.plan, row))


def audited_tokens(batch: AuditBatch) -> AuditedTokens:
    """The predicted tokens of the first target. A `Rewrite` must keep the positions, as a fragment does."""
    example, target = batch.example, batch.instance.targets[0]
    if isinstance(target, Cloze | PermutedTarget):
        return AuditedTokens(target.positions, target.answers, batch.instance.inputs.ids[target.positions])
    assert isinstance(target, DecoderTarget)
    positions = target.position + np.repeat(example.rows[:-1], np.diff(target.rows))
    return AuditedTokens(positions, target.ids, batch.instance.inputs.ids[positions])


def cloze_spans(batch: AuditBatch) -> Spans:
    """The selected spans of a cloze target."""
    cloze = batch.instance.targets[0]
    assert isinstance(cloze, Cloze)
    return cloze.spans


def row_of(example: RowBatch, positions: Ints) -> Ints:
    """The row of each position."""
    rows: Ints = np.searchsorted(example.rows, positions, side="right") - 1
    return rows


def count_in_rows(example: RowBatch, positions: Ints) -> Ints:
    """The number of positions in each row."""
    return np.bincount(row_of(example, positions), minlength=len(example)).astype(np.int64)


def to_mask(size: int, positions: Ints | Ids) -> Bools:
    """A flag for every number below `size`."""
    marked = np.zeros(size, dtype=np.bool_)
    marked[positions] = True
    return marked


def unit_starts(example: RowBatch, unit_kind: UnitKind) -> Bools:
    """The starts of the units of a layer; words fill the gaps of phrases and entities.

    Read from the unit bytes alone: an audit must not share code with the selection that it checks.
    """
    bits = example.units.bits
    own, inside = _FLAGS[unit_kind]
    starts: Bools = ((bits & own) != 0) | (((bits & UnitFlag.WORD) != 0) & ((bits & inside) == 0))
    starts[example.rows[:-1][example.lengths > 0]] = True
    return starts


_FLAGS = {
    UnitKind.WORD: (UnitFlag.WORD, 0),
    UnitKind.PHRASE: (UnitFlag.PHRASE, UnitFlag.IN_PHRASE),
    UnitKind.ENTITY: (UnitFlag.ENTITY, UnitFlag.IN_ENTITY),
}


def _documents_per_row(corpus: Corpus, plan: RowPlan, row: Ints) -> Ints:
    """The number of different documents in each row; a piece may cross several."""
    starts = np.concatenate([shard.base + shard.documents[:-1] for shard in corpus.shards])
    count = plan.rows[row + 1] - plan.rows[row]
    piece = concat_ranges(plan.rows[row], count)
    first = np.searchsorted(starts, plan.start[piece], side="right")
    last = np.searchsorted(starts, plan.start[piece] + plan.length[piece] - 1, side="right")
    fresh = last - first + 1
    again = first[1:] == last[:-1]
    heads = np.cumsum(count) - count
    again[heads[1:] - 1] = False
    fresh[1:] -= again
    return np.add.reduceat(fresh, heads).astype(np.int64)


MeasureOutput: TypeAlias = Iterator[Finding | Histogram]


class Measure(Protocol):
    """A measure of a rule. A frozen dataclass that holds the audited part."""

    def count(self, batch: AuditBatch) -> Numbers:
        """The counts of a batch: a vector of fixed length and order, which is summed."""

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The findings from the sums of all batches."""
