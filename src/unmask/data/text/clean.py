"""Cleaning: control characters and other noise are removed from documents, and counted.

Removed are control characters and NUL, lone surrogates, byte order marks inside the text, and the non-characters U+FFFE
and U+FFFF. Every line end becomes a newline; tabs and wide or non-breaking spaces become a space. Zero-width joiners
stay: emoji and several scripts need them. Letters are not normalized (NFKC, case, accents): tokenizers do that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from unmask.core.records import CharSpans, Document, DroppedInput, Ints, Spans
from unmask.data.text.drop_reasons import DropReason

_NOISE = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff"
_LINE_ENDS = r"\r\x0b\x0c\x85\u2028\u2029"
_SPACES = r"\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_anything = re.compile(f"[{_NOISE}{_LINE_ENDS}{_SPACES}]")
_gone = re.compile(rf"[{_NOISE}]|\r(?=\n)")
_noise = re.compile(f"[{_NOISE}]+")
_line_end = re.compile(f"[{_LINE_ENDS}]")
_space = re.compile(f"[{_SPACES}]")


@dataclass(frozen=True, slots=True)
class CleanResult:
    """A cleaned or dropped document, and the number of removed characters."""

    result: Document | DroppedInput
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Removes noise and drops documents with fewer than `min_chars` visible characters."""

    min_chars: int = 2

    def __call__(self, document: Document) -> CleanResult:
        """Clean one document; a clean text costs one regex search."""
        cleaned = _remove_noise(document) if _anything.search(document.text) else CleanResult(document)
        assert isinstance(cleaned.result, Document)
        if self._has_enough(cleaned.result.text):
            return cleaned
        detail = f"fewer than {self.min_chars} visible characters"
        return CleanResult(DroppedInput(DropReason.NEAR_EMPTY, document.id, detail), cleaned.removed)

    def describe(self) -> str:
        """One line for the manifest."""
        return f"cleaning, at least {self.min_chars} visible characters"

    def _has_enough(self, text: str) -> bool:
        # Possessive, so that a long blank text fails without backtracking.
        return re.match(rf"(?:\s*+\S){{{self.min_chars}}}", text) is not None


def _remove_noise(document: Document) -> CleanResult:
    text = document.text
    removed = sum(len(run) for run in _noise.findall(text))
    marks = document.char_spans
    if marks and _gone.search(text):
        gone = np.fromiter((match.start() for match in _gone.finditer(text)), dtype=np.int64)
        marks = MappingProxyType({layer: _shift_spans(found, gone) for layer, found in marks.items()})
    text = _space.sub(" ", _line_end.sub("\n", _gone.sub("", text)))
    return CleanResult(Document(document.id, text, marks), removed)


def _shift_spans(marks: CharSpans, gone: Ints) -> CharSpans:
    """Spans shifted by the characters removed before them; empty spans are dropped."""
    start = marks.spans.start - np.searchsorted(gone, marks.spans.start)
    end = marks.spans.end - np.searchsorted(gone, marks.spans.end)
    keep = start < end
    labels = tuple(label for label, kept in zip(marks.labels, keep.tolist(), strict=False) if kept)
    return CharSpans(Spans(start[keep], end[keep]), labels)
