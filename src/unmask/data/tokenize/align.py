"""Alignment: character spans of a document become units of tokens.

A span covers every token that overlaps it; spans that share a token become one unit with the label of the first; a span
without tokens is dropped. Tokens outside every word are words of one token. A token belongs to the sentence of its
first character; a sentence start is a word start and splits a word across it. A turn of a dialogue starts like a
sentence; its speaker is a bit of its first token. Phrases and entities are widened to whole words. Tokens without a
visible character belong to the visible token after them, or before them at the end of the text. The spelling of tokens
(`##`) is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from unmask.core.records import CharSpans, Ints, Spans, Speaker, TokenUnits, UnitKind

UnitLabels: TypeAlias = Mapping[UnitKind, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Units:
    """Spans without overlaps, and the character span whose label each has."""

    start: Ints
    end: Ints
    mark: Ints

    def merge_overlaps(self) -> _Units:
        """Merge spans that share a token. Starts and ends must not decrease."""
        real = self.end > self.start
        start, end, mark = self.start[real], self.end[real], self.mark[real]
        opens = np.ones(len(start), dtype=np.bool_)
        opens[1:] = start[1:] >= end[:-1]
        last = np.append(opens[1:], np.True_)[: len(start)]
        return _Units(start[opens], end[last], mark[opens])


def align_units(starts: Ints, ends: Ints, char_spans: Mapping[UnitKind, CharSpans]) -> tuple[TokenUnits, UnitLabels]:
    """Units of tokens from character spans. `starts` and `ends` never decrease; a token may cover nothing."""
    shown = np.flatnonzero(ends > starts)
    # Visible tokens only; `edge` then adds the invisible ones before each, and after the last.
    edge = np.append(0, shown + 1)
    edge[-1] = len(starts)
    starts, ends = starts[shown], ends[shown]
    found = {layer: _overlapping(starts, ends, char_spans[layer]) for layer in _BY_OVERLAP if layer in char_spans}
    found |= {layer: _sentences(starts, char_spans[layer]) for layer in _BY_START if layer in char_spans}
    words = _words(len(starts), found)
    for layer in (UnitKind.PHRASE, UnitKind.ENTITY):
        if layer in found:
            found[layer] = _widen_to_words(found[layer], words)
    labels = {
        layer: _labels(layer, unit, char_spans[layer], words)
        for layer, unit in found.items()
        if char_spans[layer].labels
    }
    spans = {layer: Spans(edge[unit.start], edge[unit.end]) for layer, unit in {**found, UnitKind.WORD: words}.items()}
    spoken = [role == Speaker.REPLY for role in labels.get(UnitKind.TURN, ())]
    replies = spans[UnitKind.TURN].start[spoken] if spoken else np.zeros(0, dtype=np.int64)
    return TokenUnits.of(int(edge[-1]), spans).with_replies(replies), MappingProxyType(labels)


_BY_OVERLAP = (UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY)
_BY_START = (UnitKind.SENTENCE, UnitKind.TURN)


def _overlapping(starts: Ints, ends: Ints, marks: CharSpans) -> _Units:
    """The tokens that overlap each span."""
    first = np.searchsorted(ends, marks.spans.start, side="right")
    last = np.searchsorted(starts, marks.spans.end, side="left")
    return _Units(first, last, np.arange(len(first))).merge_overlaps()


def _sentences(starts: Ints, marks: CharSpans) -> _Units:
    """Each sentence from the first token that begins in it or later, up to the next sentence."""
    first = np.searchsorted(starts, marks.spans.start, side="left")
    return _Units(first, np.append(first[1:], len(starts))[: len(first)], np.arange(len(first))).merge_overlaps()


def _words(count: int, found: Mapping[UnitKind, _Units]) -> _Units:
    """Words that cover every token: the given ones, split where a sentence begins, and single tokens in between."""
    opens = np.ones(count, dtype=np.bool_)
    mark = np.full(count, _UNMARKED)
    if UnitKind.WORD in found:
        marked = found[UnitKind.WORD]
        step = np.zeros(count + 1, dtype=np.int64)
        step[marked.start] += 1
        step[marked.end] -= 1
        inside = np.cumsum(step[:-1]) > 0
        opens[inside] = False
        opens[marked.start] = True
        mark[inside] = np.repeat(marked.mark, marked.end - marked.start)
    for layer in _BY_START:
        if layer in found:
            opens[found[layer].start] = True
    start = np.flatnonzero(opens)
    return _Units(start, np.append(start[1:], count)[: len(start)], mark[start])


def _widen_to_words(units: _Units, words: _Units) -> _Units:
    """Widen each span to the borders of its words."""
    first = np.searchsorted(words.start, units.start, side="right") - 1
    last = np.searchsorted(words.end, units.end, side="left")
    return _Units(words.start[first], words.end[last], units.mark).merge_overlaps()


def _labels(layer: UnitKind, units: _Units, marks: CharSpans, words: _Units) -> tuple[str, ...]:
    """One label for each unit of the layer, empty for units without a span."""
    kept = words.mark if layer is UnitKind.WORD else units.mark
    if layer is UnitKind.SENTENCE and (not len(units.start) or units.start[0] > 0) and len(words.start):
        kept = np.append(_UNMARKED, kept)
    return tuple(marks.labels[mark] if mark != _UNMARKED else "" for mark in kept.tolist())


_UNMARKED = -1
