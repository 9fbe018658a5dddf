"""Cutting what is too long, at the best place there is.

What arrives: a text, a stretch of it, and tiers of marks to cut after, the best tier first.
What leaves: pieces that lie side by side and together are the stretch; none is longer than the limit.
What never happens here: losing or moving a character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Tiers: TypeAlias = tuple[tuple[str, ...], ...]

SENTENCE_ENDS: Tiers = (("\n", "。", "！", "？", ". ", "! ", "? "), (" ", "，", "；"))
CLAUSE_ENDS: Tiers = ((", ", "，", "; ", "；", "、", ": ", "："), (" ", "\t"))


def split_long(text: str, start: int, end: int, max_chars: int, tiers: Tiers) -> Iterator[tuple[int, int]]:
    """Pieces of `text[start:end]` of at most `longest` characters, cut after a mark where one stands."""
    while end - start > max_chars:
        stop = _last_mark(text, start, start + max_chars, tiers)
        yield start, stop
        start = stop
    yield start, end


def _last_mark(text: str, start: int, stop: int, tiers: Tiers) -> int:
    """The end of the last mark in the second half of the window: an early mark would leave crumbs."""
    low = start + (stop - start) // 2
    for marks in tiers:
        best = max(_end_of_last(text, mark, low, stop) for mark in marks)
        if best > low:
            return best
    return stop


def _end_of_last(text: str, mark: str, low: int, stop: int) -> int:
    place = text.rfind(mark, low, stop)
    return place + len(mark) if place >= 0 else low
