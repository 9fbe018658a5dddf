"""Sentence splitting for Chinese, English and mixed text.

A regex finds all candidates, and only those are examined. A line end always ends a sentence. Chinese marks (。！？)
always do, with the closing quotes after them, unless the sentence continues (“好！”，他说). A full stop needs a space
and no lower-case letter after it, and must not belong to an abbreviation, an initial, a numbered heading or a number. A
stretch without marks is split at `max_chars`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import CharSpans, Document, Ints, Spans, UnitKind
from unmask.data.text.units.characters import CharClass, char_classes, code_points

Tiers: TypeAlias = tuple[tuple[str, ...], ...]

SENTENCE_ENDS: Tiers = (("\n", "。", "！", "？", ". ", "! ", "? "), (" ", "，", "；"))
CLAUSE_ENDS: Tiers = ((", ", "，", "; ", "；", "、", ": ", "："), (" ", "\t"))


def split_long(text: str, start: int, end: int, max_chars: int, tiers: Tiers) -> Iterator[tuple[int, int]]:
    """Pieces of `text[start:end]` of at most `max_chars` characters, split after a mark of the best tier."""
    while end - start > max_chars:
        stop = _last_mark(text, start, start + max_chars, tiers)
        yield start, stop
        start = stop
    yield start, end


def _last_mark(text: str, start: int, stop: int, tiers: Tiers) -> int:
    """The end of the last mark in the second half of the window; an earlier mark would leave short pieces."""
    low = start + (stop - start) // 2
    for marks in tiers:
        best = max(_end_of_last(text, mark, low, stop) for mark in marks)
        if best > low:
            return best
    return stop


def _end_of_last(text: str, mark: str, low: int, stop: int) -> int:
    place = text.rfind(mark, low, stop)
    return place + len(mark) if place >= 0 else low


_NEVER_LAST = """
mr mrs ms dr prof rev hon gen col lt sgt capt cmdr maj gov sen rep st mt messrs mme mlle fr
e.g i.e cf vs viz approx esp resp al ph
"""
_BEFORE_NUMBER = "no nos fig figs eq eqs sec vol vols ch chap art p pp para ed n c ca"
_SOMETIMES_LAST = """
etc inc ltd co corp jr sr bros dept univ est jan feb mar apr jun jul aug sep sept oct nov dec
mon tue tues wed thu thur thurs fri sat sun ave blvd rd a.m p.m b.c a.d ph.d m.d d.c
"""
_STARTERS = """
The A An This That These Those He She It They We You I His Her Its Their Our My There Here In On At By For From
With After Before When While Where Since As If But And Or So Yet However Although Though Then Thus Also To What
Who Why How Most Some Many Both Each Later Today Now Once
"""

NEVER_LAST = frozenset(_NEVER_LAST.split())
"""Never ends a sentence: a name or an example follows."""
BEFORE_NUMBER = frozenset(_BEFORE_NUMBER.split())
"""An abbreviation only before a number; `no.` also ends sentences."""
SOMETIMES_LAST = frozenset(_SOMETIMES_LAST.split())
"""Ends a sentence if a word follows that begins one."""
SENTENCE_STARTERS = frozenset(_STARTERS.split())
"""Capitalized words that nearly always begin a sentence."""

_initialism = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")


def is_initialism(word: str) -> bool:
    """Whether a word is an initial (J) or letters with points between them (U.S)."""
    return _initialism.fullmatch(word) is not None and (len(word) > 1 or word.isupper())


_FULL = frozenset("。！？｡؟۔।॥")
_CLOSING = "”’」』）】》〉〗〕"
_candidate = re.compile(rf"\n|([{''.join(sorted(_FULL))}!?.…]+)([{_CLOSING}\"')\]}}]*)")
_CONTINUES = frozenset(f",，、;；:：{_CLOSING}")
_OPENING = "“‘「『（【《〈"
_next_visible = re.compile(r"\s*+(\S\w*\.?)")
_first_unspaced = "\u2e80"
_QUOTE_LOOKBACK = 1000  # the range in which an open quote is searched; both limits keep the work linear
_LONGEST_WORD = 24


@dataclass(frozen=True, slots=True)
class Sentences:
    """Marks sentences of at most `max_chars` characters; longer ones are split at a comma, a space, or anywhere."""

    max_chars: int = 1000

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise RecipeError(f"Sentences: the longest sentence must have at least 1 character, not {self.max_chars}.")

    def __call__(self, document: Document) -> Document:
        """Add SENTENCE marks."""
        if UnitKind.WORD in document.char_spans:
            raise RecipeError(f"{document.id}: words stop at sentence borders, so put Sentences before Words.")
        return document.with_char_spans(UnitKind.SENTENCE, CharSpans(self._spans(document.text)))

    def describe(self) -> str:
        """One line for the manifest."""
        return f"sentences, at most {self.max_chars} characters"

    def _spans(self, text: str) -> Spans:
        borders = np.fromiter(_sentence_boundaries(text), dtype=np.int64)
        spans = _strip_spans(text, borders)
        if not (spans.lengths > self.max_chars).any():
            return spans
        pieces = (
            stop
            for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True)
            for _, stop in split_long(text, start, end, self.max_chars, CLAUSE_ENDS)
        )
        return _strip_spans(text, np.fromiter(pieces, dtype=np.int64))


def _strip_spans(text: str, borders: Ints) -> Spans:
    """The spans between borders without surrounding whitespace; blank ones are dropped."""
    visible = np.flatnonzero(char_classes(code_points(text)) != CharClass.SPACE)
    edges = np.concatenate(([0], np.searchsorted(visible, borders), [len(visible)]))
    first, last = edges[:-1], edges[1:]
    full = first < last
    return Spans(visible[first[full]], visible[last[full] - 1] + 1)


def _sentence_boundaries(text: str) -> Iterator[int]:
    """The positions at which sentences begin, in order."""
    start = 0
    for match in _candidate.finditer(text):
        end = match.end()
        if match[1]:
            end -= _opening_quotes(text, start, match)
            if not _is_sentence_end(text, start, match[1], match.end(1), end):
                continue
        yield end
        start = end


def _opening_quotes(text: str, start: int, match: re.Match[str]) -> int:
    """1 if the straight quote after the marks opens the next sentence, 0 if it closes this one.

    Before a space or the end of the text it closes. Otherwise it closes if one is open in this sentence.
    """
    end = match.end()
    if match[2] != '"' or not text[end : end + 1].strip():
        return 0
    return 1 - text.count('"', max(start, end - _QUOTE_LOOKBACK), match.end(1)) % 2


def _is_sentence_end(text: str, start: int, marks: str, after_marks: int, end: int) -> bool:
    """Whether a sentence ends with these marks; `end` is the position after the closing quotes."""
    following = text[end : end + 1]
    if following in _CONTINUES:
        return False
    if not _FULL.isdisjoint(marks):
        return True
    if not following.isspace():
        return _is_unspaced_end(text, marks, after_marks, following)
    match = _next_visible.match(text, end)
    if match is None:
        return True
    if match[1][0].islower():
        return False
    return marks != "." or _is_full_stop(text, start, after_marks - 1, match[1])


def _is_unspaced_end(text: str, marks: str, after_marks: int, following: str) -> bool:
    """Whether a sentence ends without a space after it: only a script without spaces or an opening quote follows."""
    if following < _first_unspaced and following not in _OPENING:
        return False
    before = text[after_marks - len(marks) - 1 : after_marks - len(marks)]
    return marks != "." or before >= _first_unspaced


def _is_full_stop(text: str, start: int, stop: int, following: str) -> bool:
    """Whether the full stop at `stop` ends a sentence, not an abbreviation, an initial or a heading number."""
    words = text[max(start, stop - _LONGEST_WORD) : stop].rsplit(None, 1)
    if not words:
        return True
    word = words[-1].lstrip("(\"'[“‘（")
    if word.isdecimal() and len(words) == 1 and stop - start < _LONGEST_WORD:
        return False
    if word.lower() in NEVER_LAST:
        return False
    if word.lower() in SOMETIMES_LAST or is_initialism(word):
        return following in SENTENCE_STARTERS
    return word.lower() not in BEFORE_NUMBER or not following[0].isdecimal()
