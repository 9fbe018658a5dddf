"""Cleaning: what no tokenizer should see is taken out, and counted.

What arrives: a document as it was read. What leaves: a `Cleaned`: the document without noise, or a `Dropped` if next to
nothing is left, and how many characters were removed. Marks given with the document follow the text.
What never happens here: normalising letters (NFKC, case, accents). Tokenizers do that, each in its own way.

Removed: control characters and NUL, lone surrogates, byte order marks inside the text, and the non-characters U+FFFE
and U+FFFF. Every kind of line end becomes a newline. Tabs and wide or unbreakable spaces become a plain space.
Zero-width joiners stay: emoji and several scripts are written with them.
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
    """What became of a document, and how many noise characters were taken out of it."""

    result: Document | DroppedInput
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Takes noise out of a document and leaves out documents with fewer than `shortest` visible characters."""

    min_chars: int = 2

    def __call__(self, document: Document) -> CleanResult:
        """Clean one document. A clean text costs one search."""
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
        # Possessive, so that a long blank text is given up in one go.
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
    """Marks moved left by what was removed before them. A mark of which nothing is left disappears."""
    start = marks.spans.start - np.searchsorted(gone, marks.spans.start)
    end = marks.spans.end - np.searchsorted(gone, marks.spans.end)
    keep = start < end
    labels = tuple(label for label, kept in zip(marks.labels, keep.tolist(), strict=False) if kept)
    return CharSpans(Spans(start[keep], end[keep]), labels)
