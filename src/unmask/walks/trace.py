"""What a corruption did to one row, place by place.

What arrives: a corruption, a row, and the key of its draw. What leaves: for each step, the input that it left behind,
the fate of every place in it, and the spans that were chosen, in positions of the original row.
What never happens here: a second version of any rule. A corruption draws from the key and the units, never from the
ids; so it is simply run again on a row whose ids are its own positions, and its output tells where everything went.
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
"""The origin of a token that stood nowhere in the row."""


class TokenFate(StrEnum):
    """What stands at a place of the input, and why."""

    SHOWN = "shown"
    """The token that always stood there."""
    SPECIAL = "special"
    """A token such as [CLS], which no rule touches."""
    MASK = "mask"
    """The mask."""
    RANDOM = "random"
    """A random token, or a random word."""
    KEPT = "kept"
    """A chosen token that was left in place, and is asked for all the same."""
    SIMILAR = "similar"
    """A similar word."""
    SENTINEL = "sentinel"
    """A marker for a removed span."""
    MOVED = "moved"
    """A token from elsewhere in the row."""
    ORDERED = "ordered"
    """A token in plain sight of some positions and hidden from others: it is said in a drawn order."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """One place of an input. `group` is the number of the chosen span that it belongs to, from 1; 0 for none."""

    id: int
    fate: TokenFate
    group: int


@dataclass(frozen=True, slots=True)
class SelectedSpan:
    """One chosen span: where its tokens stood in the row, and which places of the input stand for it now."""

    origins: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The input after one step."""

    corruption: Corruption
    positions: tuple[InputPosition, ...]
    selected_spans: tuple[SelectedSpan, ...]
    origins: tuple[int, ...]
    """Where the token at each place stood in the original row; -1 for one that is new."""

    @property
    def is_in_place(self) -> bool:
        """Whether every token stands where it stood, or something else stands there for it."""
        moved = any(place.fate is TokenFate.MOVED for place in self.positions)
        return not moved and all(span.origins == span.positions for span in self.selected_spans)


def trace(corruption: Corruption, example: RowBatch, vocab: Vocab, key: Key) -> tuple[TraceStep, ...]:
    """The steps of a corruption of one row, the last being what the network sees. Most have a single step."""
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
    asked = _spans_in_place(corrupt, instance)
    spans = tuple(_to_selected_spans(asked) if asked else _selected_gaps(source, len(example.ids)))
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
    """The chosen spans of a corruption that leaves everything in its place; nothing for one that moves tokens."""
    target = instance.targets[0]
    if isinstance(target, Cloze):
        return [list(range(*span)) for span in zip(target.spans.start.tolist(), target.spans.end.tolist(), strict=True)]
    if isinstance(target, PermutedTarget):
        return _contiguous_runs(target.positions)
    if isinstance(target, DecoderTarget) and isinstance(corrupt, MassFragment):
        return _contiguous_runs(target.position)
    return []


def _contiguous_runs(positions: Ints) -> list[list[int]]:
    """Neighbouring positions together."""
    return [run.tolist() for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)]


def _to_selected_spans(spans: list[list[int]]) -> Iterator[SelectedSpan]:
    for span in spans:
        yield SelectedSpan(tuple(span), tuple(span))


def _selected_gaps(source: Ints, length: int) -> Iterator[SelectedSpan]:
    """What is missing between neighbours that stayed, and what stands there instead; nothing if tokens moved."""
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
    asked = TokenFate.ORDERED if ordered else TokenFate.KEPT
    outcomes = (
        TokenFate.MASK,
        TokenFate.SENTINEL,
        TokenFate.RANDOM,
        TokenFate.SPECIAL,
        asked,
        TokenFate.MOVED,
        TokenFate.SHOWN,
    )
    first = np.select(conditions, list(range(len(conditions))), len(conditions))
    return [outcomes[number] for number in first.tolist()]


def _is_moved(origin: Ints) -> Bools:
    """Which places hold a token from elsewhere. Closing up after a gap is not a move, so order alone decides."""
    kept = np.flatnonzero(origin != _NEW)
    moved = np.zeros(len(origin), dtype=np.bool_)
    moved[kept] = np.argsort(np.argsort(origin[kept])) != np.arange(len(kept))
    return moved


def _similar_positions(
    ids: Ids, example: RowBatch, spans: tuple[SelectedSpan, ...], table: SimilarWords
) -> Iterator[int]:
    """The places of words that are now one of their own neighbours in the table."""
    begins = (example.units.bits & UnitFlag.WORD) != 0
    for span in spans:
        starts = [place for place in span.positions if begins[place] or place == span.positions[0]]
        for start, end in zip(starts, [*starts[1:], span.positions[-1] + 1], strict=True):
            if ids[start:end].tolist() in _similar_words(example.ids[start:end], table):
                yield from range(start, end)


def _similar_words(word: Ids, table: SimilarWords) -> list[list[int]]:
    """The words that the table knows as similar to a word."""
    number = int(table.words.find(word, np.zeros(1, dtype=np.int64))[0])
    if number == UNKNOWN:
        return []
    found = table.neighbours[table.rows[number] : table.rows[number + 1]]
    return [table.words.word(int(other)).tolist() for other in found]
