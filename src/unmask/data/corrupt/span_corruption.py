"""Span corruption (T5, Raffel et al., 2020): each removed span becomes one sentinel; the target lists the spans.

    text     Thank you for inviting me to your party last week
    inputs   Thank you <0> me to your party <1>
    target   <0> for inviting <1> last week <2> [SEP]

The free tokens of a row are cut as one sequence, so a removed span may contain a special token. The special token
stays, and each part of the span gets its own sentinel. Fewer spans are drawn for a row with many segments, so that its
parts rarely outnumber the sentinels; parts without a sentinel stay visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import Bools, DecoderTarget, Ids, Inputs, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corrupt.row_ops import free_tokens, random_partition, segment_starts
from unmask.data.input_formats.row_plan import row_class_targets
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class SpanCorruption:
    """Remove `rate` of the free tokens in spans of `mean_span_length` tokens on average.

    Numbers are rounded as in T5: `rate * n` tokens, at least 1 and at most n - 1. Text and spans alternate, text first,
    so the last free token of a row is always removed. A row of one free token loses it.
    """

    rate: float = 0.15
    mean_span_length: float = 3.0
    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise RecipeError(f"SpanCorruption needs a rate between 0 and 1, found {self.rate}; T5 uses 0.15.")
        if not self.mean_span_length >= 1:
            raise RecipeError(
                f"SpanCorruption needs a mean span length of 1 or more, found {self.mean_span_length}; T5 uses 3."
            )

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Remove spans from every row; the target lists them."""
        if len(vocab.sentinels) < 2:
            raise RecipeError(
                f"SpanCorruption needs a vocabulary with at least 2 sentinels, one for a span and one for the end, "
                f"found {len(vocab.sentinels)}; train or extend the tokenizer with sentinels (T5 has 100)."
            )
        edge = segment_starts(example)
        at = self._sample_removed(example, edge, len(vocab.sentinels) - 1, key)
        opens = _run_starts(at, edge)
        target = _target(example, at, opens, vocab)
        return InputsAndTargets(_inputs(example, at, opens, vocab), (target, *row_class_targets(example)))

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows: each sentinel of the inputs is replaced by its span in the target."""
        inputs, target = instance.inputs, instance.targets[0]
        assert isinstance(target, DecoderTarget)
        holes = np.flatnonzero(np.isin(inputs.ids, vocab.sentinels))
        marks = np.flatnonzero(np.isin(target.ids, vocab.sentinels))
        lengths = np.diff(marks, append=len(target.ids)) - 1
        spans = np.ones(len(marks), dtype=np.bool_)
        spans[np.searchsorted(marks, target.rows)[1:] - 1] = False  # the last sentinel of a row only ends it
        starts, counts = np.arange(len(inputs.ids)), np.ones(len(inputs.ids), dtype=np.int64)
        starts[holes] = len(inputs.ids) + marks[spans] + 1
        counts[holes] = lengths[spans]
        ids = np.concatenate([inputs.ids, target.ids])[concat_ranges(starts, counts)]
        return ids, offsets(counts)[inputs.rows]

    def _sample_removed(self, example: RowBatch, edge: Bools, limit: int, key: Key) -> Ints:
        """The positions of the removed tokens: at most `limit` runs in a row."""
        free, rows = free_tokens(example)
        stretches = np.diff(np.searchsorted(np.flatnonzero(edge[free]), rows))
        noise, spans = self._noise_counts(np.diff(rows), np.maximum(limit + 1 - stretches, 1))
        text = np.diff(rows) - noise
        lengths = np.stack(
            [
                random_partition(text, spans, key, DrawPurpose.PLACE),
                random_partition(noise, spans, key, DrawPurpose.LENGTH),
            ],
            axis=1,
        )
        at = free[np.repeat(np.tile([False, True], len(lengths)), lengths.ravel())]
        opens = _run_starts(at, edge)
        number = positions_in_rows(np.searchsorted(at[opens], example.rows))[np.cumsum(opens) - 1]
        kept: Ints = at[number < limit]
        return kept

    def _noise_counts(self, size: Ints, most: Ints) -> tuple[Ints, Ints]:
        """How many tokens of each row to remove, and in how many spans, of which there may be `most`."""
        noise = np.clip(np.rint(size * self.rate).astype(np.int64), 1, np.maximum(size - 1, 1))
        noise = np.minimum(noise, size)
        spans = np.minimum(np.rint(noise / self.mean_span_length).astype(np.int64), np.minimum(noise, size - noise))
        return noise, np.clip(spans, 1, most)


def _run_starts(at: Ints, edge: Bools) -> Bools:
    """Which of the removed tokens begin a run."""
    opens: Bools = edge[at] | (np.diff(at, prepend=-2) != 1)
    return opens


def _inputs(example: RowBatch, at: Ints, opens: Bools, vocab: Vocab) -> Inputs:
    """The rows with the first token of each run replaced by its sentinel and the others removed."""
    ids, kept = example.ids.copy(), np.ones(len(example.ids), dtype=np.bool_)
    heads = at[opens]
    ids[heads] = vocab.sentinels[positions_in_rows(np.searchsorted(heads, example.rows))]
    kept[at[~opens]] = False
    source = np.flatnonzero(kept)
    rows = np.searchsorted(source, example.rows)
    return Inputs(ids[source], example.segment[source], example.document[source], positions_in_rows(rows), rows)


def _target(example: RowBatch, at: Ints, opens: Bools, vocab: Vocab) -> DecoderTarget:
    """Sentinel, span, sentinel, span, ..., a last sentinel, the end.

    A sentinel has the position of the first token of its span; the closing tokens follow the row.
    """
    tokens, spans = np.searchsorted(at, example.rows), np.searchsorted(at[opens], example.rows)
    rows = tokens + spans + 2 * np.arange(len(example) + 1)
    row = np.repeat(np.arange(len(example)), np.diff(tokens))
    place = np.arange(len(at)) + np.cumsum(opens) + 2 * row
    head, final = place[opens] - 1, rows[1:] - 2
    ids, position = np.empty(rows[-1], dtype=np.int32), np.empty(rows[-1], dtype=np.int64)
    ids[place], position[place] = example.ids[at], at - example.rows[row]
    ids[head], position[head] = vocab.sentinels[positions_in_rows(spans)], position[head + 1]
    ids[final], position[final] = vocab.sentinels[np.diff(spans)], example.lengths
    ids[final + 1], position[final + 1] = vocab.eos, example.lengths
    return DecoderTarget(ids, rows, position, start_id=vocab.pad)
