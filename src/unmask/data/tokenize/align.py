"""Character marks in, token units out: the only place where this happens.

What arrives: the characters that each token covers, and the marks of a document.
What leaves: the unit byte of each token, and the labels of the units that survive.
What never happens here: looking at tokens. Whether a token begins with `##` says nothing about words.

The rules. A mark covers every token that overlaps it; marks that share a token become one unit; a mark without tokens
vanishes. Tokens outside every word are words of one token. A token belongs to the sentence of its first character;
a sentence start is a word start, and a word that was marked across it is cut there. A turn of a conversation starts
like a sentence; who speaks it is a bit of its first token. Phrases and entities are widened to whole words. Tokens that
show no character (a space of its own) belong to the visible token after them, or before them at the end of the text.
Where marks become one unit, the label of the first stays.
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
    """Spans that do not overlap, and for each of them the mark whose label it has."""

    start: Ints
    end: Ints
    mark: Ints

    def merge_overlaps(self) -> _Units:
        """Spans that share a token become one. Starts and ends must not decrease."""
        real = self.end > self.start
        start, end, mark = self.start[real], self.end[real], self.mark[real]
        opens = np.ones(len(start), dtype=np.bool_)
        opens[1:] = start[1:] >= end[:-1]
        last = np.append(opens[1:], np.True_)[: len(start)]
        return _Units(start[opens], end[last], mark[opens])


def align_units(starts: Ints, ends: Ints, char_spans: Mapping[UnitKind, CharSpans]) -> tuple[TokenUnits, UnitLabels]:
    """Units of tokens from marks on characters. `starts` and `ends` never decrease; a token may cover nothing."""
    shown = np.flatnonzero(ends > starts)
    # Work on visible tokens alone; `edge` then gives each the invisible ones before it, and the last also those after.
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
    """The tokens that overlap each mark."""
    first = np.searchsorted(ends, marks.spans.start, side="right")
    last = np.searchsorted(starts, marks.spans.end, side="left")
    return _Units(first, last, np.arange(len(first))).merge_overlaps()


def _sentences(starts: Ints, marks: CharSpans) -> _Units:
    """Each sentence from the first token that begins in it or after it up to the next sentence."""
    first = np.searchsorted(starts, marks.spans.start, side="left")
    return _Units(first, np.append(first[1:], len(starts))[: len(first)], np.arange(len(first))).merge_overlaps()


def _words(count: int, found: Mapping[UnitKind, _Units]) -> _Units:
    """Words that cover every token: the marked ones, cut where a sentence begins, and single tokens in between."""
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
    """Move the ends of each span outward to the borders of the words that they stand in."""
    first = np.searchsorted(words.start, units.start, side="right") - 1
    last = np.searchsorted(words.end, units.end, side="left")
    return _Units(words.start[first], words.end[last], units.mark).merge_overlaps()


def _labels(layer: UnitKind, units: _Units, marks: CharSpans, words: _Units) -> tuple[str, ...]:
    """One label for each unit of the layer; words and sentences that no mark made have an empty one."""
    kept = words.mark if layer is UnitKind.WORD else units.mark
    if layer is UnitKind.SENTENCE and (not len(units.start) or units.start[0] > 0) and len(words.start):
        kept = np.append(_UNMARKED, kept)
    return tuple(marks.labels[mark] if mark != _UNMARKED else "" for mark in kept.tolist())


_UNMARKED = -1
