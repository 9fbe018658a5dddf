"""The trace of a corruption on one row: the origin of every input token, and the selected spans.

A corruption draws from the key and the units, never from the ids. It runs again on a row whose ids are its own
positions, so that its output shows where every token came from; no rule is implemented twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from unmask.core.records import (
    Bools,
    Cloze,
    DecoderTarget,
    Ids,
    InputsAndTargets,
    Ints,
    PermutedTarget,
    RowBatch,
    UnitFlag,
)
from unmask.core.rng import Key
from unmask.data.corrupt.compose import NoiseSequence, NoiseStep
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.protocol import Corruption
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.vocab import Vocab
from unmask.data.tokenize.word_table import UNKNOWN

_NEW = -1
"""The origin of a token that is not from the row."""


class TokenFate(StrEnum):
    """How a token of the input came about."""

    SHOWN = "shown"
    """The original token."""
    SPECIAL = "special"
    """A special token, which no rule changes."""
    MASK = "mask"
    """A mask."""
    RANDOM = "random"
    """A random token or word."""
    KEPT = "kept"
    """A selected token that is kept and predicted nevertheless."""
    SIMILAR = "similar"
    """A similar word."""
    SENTINEL = "sentinel"
    """A sentinel of a removed span."""
    MOVED = "moved"
    """A token from another position of the row."""
    ORDERED = "ordered"
    """A token that some positions may attend to and others not: predicted in a drawn order."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """One position of an input. `group` is the number of its selected span, from 1; 0 for none."""

    id: int
    fate: TokenFate
    group: int


@dataclass(frozen=True, slots=True)
class SelectedSpan:
    """A selected span: its positions in the row, and the input positions in its place."""

    origins: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The input after one step."""

    corruption: Corruption
    positions: tuple[InputPosition, ...]
    selected_spans: tuple[SelectedSpan, ...]
    origins: tuple[int, ...]
    """The position of each token in the original row; -1 for a new one."""

    @property
    def is_in_place(self) -> bool:
        """Whether every token is at its position or replaced there."""
        moved = any(place.fate is TokenFate.MOVED for place in self.positions)
        return not moved and all(span.origins == span.positions for span in self.selected_spans)


def trace(corruption: Corruption, example: RowBatch, vocab: Vocab, key: Key) -> tuple[TraceStep, ...]:
    """The steps of a corruption of one row; the last is the input of the network. Most have one step."""
    origin = np.arange(len(example.ids))
    if not isinstance(corruption, NoiseSequence):
        return (_trace_step(corruption, example, origin, vocab, key),)
    steps = []
    for number, step in enumerate(corruption.steps):
        assert isinstance(step, NoiseStep)
        own = key.fold_in("step", number)
        steps.append(_trace_step(step, example, origin, vocab, own))
        example, origin = step.apply(example, vocab, own), np.array(steps[-1].origins, dtype=np.int64)
    return tuple(steps)


def _trace_step(corrupt: Corruption, example: RowBatch, origin: Ints, vocab: Vocab, key: Key) -> TraceStep:
    instance = corrupt(example, vocab, key)
    numbered = replace(example, ids=np.arange(len(example.ids), dtype=np.int32) + np.int32(vocab.size))
    source = corrupt(numbered, vocab, key).inputs.ids.astype(np.int64) - vocab.size
    source[source < 0] = _NEW
    in_place = _spans_in_place(corrupt, instance)
    spans = tuple(_to_selected_spans(in_place) if in_place else _selected_gaps(source, len(example.ids)))
    group = np.zeros(len(source), dtype=np.int64)
    for number, span in enumerate(spans, start=1):
        group[list(span.positions)] = number
    before = np.append(origin, _NEW)
    fixed = np.append(example.protected, False)[source]
    fates = _fates(instance, before[source], fixed, group, vocab)
    if isinstance(corrupt, MaskTokens) and corrupt.replace.similar:
        for place in _similar_positions(instance.inputs.ids, example, spans, vocab.similar_words):
            fates[place] = TokenFate.SIMILAR if fates[place] is TokenFate.RANDOM else fates[place]
    shown = zip(instance.inputs.ids.tolist(), fates, group.tolist(), strict=True)
    chosen = (SelectedSpan(tuple(before[list(s.origins)].tolist()) if s.origins else (), s.positions) for s in spans)
    return TraceStep(
        corrupt, tuple(InputPosition(*one) for one in shown), tuple(chosen), tuple(before[source].tolist())
    )


def _spans_in_place(corrupt: Corruption, instance: InputsAndTargets) -> list[list[int]]:
    """The selected spans of a corruption that moves no token; none otherwise."""
    target = instance.targets[0]
    if isinstance(target, Cloze):
        return [list(range(*span)) for span in zip(target.spans.start.tolist(), target.spans.end.tolist(), strict=True)]
    if isinstance(target, PermutedTarget):
        return _contiguous_runs(target.positions)
    if isinstance(target, DecoderTarget) and isinstance(corrupt, MassFragment):
        return _contiguous_runs(target.position)
    return []


def _contiguous_runs(positions: Ints) -> list[list[int]]:
    """Runs of adjacent positions."""
    return [run.tolist() for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)]


def _to_selected_spans(spans: list[list[int]]) -> Iterator[SelectedSpan]:
    for span in spans:
        yield SelectedSpan(tuple(span), tuple(span))


def _selected_gaps(source: Ints, length: int) -> Iterator[SelectedSpan]:
    """The gaps between adjacent kept tokens, and what replaces them; none if tokens moved."""
    kept = np.flatnonzero(source != _NEW)
    if (np.diff(source[kept]) < 0).any():
        return
    places, origins = np.append(kept, len(source)), np.append(source[kept], length)
    before_place = before_origin = -1
    for place, origin in zip(places.tolist(), origins.tolist(), strict=True):
        gone, holes = tuple(range(before_origin + 1, origin)), tuple(range(before_place + 1, place))
        if gone or holes:
            yield SelectedSpan(gone, holes)
        before_place, before_origin = place, origin


def _fates(instance: InputsAndTargets, origin: Ints, fixed: Bools, group: Ints, vocab: Vocab) -> list[TokenFate]:
    ids, sentinels = instance.inputs.ids, vocab.sentinels
    ordered = any(isinstance(target, PermutedTarget) for target in instance.targets)
    new = origin == _NEW
    conditions = [new & (ids == vocab.mask), new & np.isin(ids, sentinels), new, fixed, group > 0, _is_moved(origin)]
    kept = TokenFate.ORDERED if ordered else TokenFate.KEPT
    outcomes = (
        TokenFate.MASK,
        TokenFate.SENTINEL,
        TokenFate.RANDOM,
        TokenFate.SPECIAL,
        kept,
        TokenFate.MOVED,
        TokenFate.SHOWN,
    )
    first = np.select(conditions, list(range(len(conditions))), len(conditions))
    return [outcomes[number] for number in first.tolist()]


def _is_moved(origin: Ints) -> Bools:
    """The positions with a token from elsewhere, by order: closing a gap is not a move."""
    kept = np.flatnonzero(origin != _NEW)
    moved = np.zeros(len(origin), dtype=np.bool_)
    moved[kept] = np.argsort(np.argsort(origin[kept])) != np.arange(len(kept))
    return moved


def _similar_positions(
    ids: Ids, example: RowBatch, spans: tuple[SelectedSpan, ...], table: SimilarWords
) -> Iterator[int]:
    """The positions of words that became one of their neighbors in the table."""
    begins = (example.units.bits & UnitFlag.WORD) != 0
    for span in spans:
        starts = [place for place in span.positions if begins[place] or place == span.positions[0]]
        for start, end in zip(starts, [*starts[1:], span.positions[-1] + 1], strict=True):
            if ids[start:end].tolist() in _similar_words(example.ids[start:end], table):
                yield from range(start, end)


def _similar_words(word: Ids, table: SimilarWords) -> list[list[int]]:
    """The words that are similar to a word in the table."""
    number = int(table.words.find(word, np.zeros(1, dtype=np.int64))[0])
    if number == UNKNOWN:
        return []
    found = table.neighbours[table.rows[number] : table.rows[number + 1]]
    return [table.words.word(int(other)).tolist() for other in found]
