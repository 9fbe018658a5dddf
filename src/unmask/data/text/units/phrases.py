"""Phrases: adjacent words of a list, such as 机器 学习 or machine learning.

The longest phrase is matched first, and none crosses a sentence border.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from unmask.core.errors import InputError, RecipeError
from unmask.core.records import NO_SPANS, CharSpans, Document, Ints, Spans, UnitKind
from unmask.data.text.files.encoding import numbered_lines

Phrase: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseMatcher:
    """Marks the phrases of a list. A phrase is two or more words of the segmented text."""

    phrases: tuple[Phrase, ...]
    _lengths: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)
    """The lengths of the phrases that begin with each word, longest first."""
    _known: frozenset[Phrase] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for phrase in self.phrases:
            if len(phrase) < 2 or not all(phrase):
                raise InputError(f"Phrases: a phrase is two or more words, not {phrase!r}.")
            lengths[phrase[0]].add(len(phrase))
        longest_first = {word: tuple(sorted(found, reverse=True)) for word, found in lengths.items()}
        object.__setattr__(self, "_lengths", longest_first)
        object.__setattr__(self, "_known", frozenset(self.phrases))

    def __call__(self, document: Document) -> Document:
        """Add PHRASE marks."""
        spans, words = words_of(document)
        found = list(self._find(words, sentence_numbers(document, spans).tolist()))
        if not found:
            return document.with_char_spans(UnitKind.PHRASE, CharSpans(NO_SPANS))
        first, after = np.asarray(found, dtype=np.int64).T
        return document.with_char_spans(UnitKind.PHRASE, CharSpans(Spans(spans.start[first], spans.end[after - 1])))

    def describe(self) -> str:
        """One line for the manifest."""
        digest = hashlib.blake2b(repr(self.phrases).encode(), digest_size=8).hexdigest()
        return f"{len(self.phrases)} phrases {digest}"

    def _find(self, words: Sequence[str], sentences: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The first word and the end of each match, from left to right, the longest at each place."""
        after = 0
        for first in [place for place, word in enumerate(words) if word in self._lengths]:
            if first < after:
                continue
            for length in self._lengths[words[first]]:
                end = first + length
                fits = end <= len(words) and sentences[first] == sentences[end - 1]
                if fits and tuple(words[first:end]) in self._known:
                    yield first, end
                    after = end
                    break

    def save(self, path: Path) -> None:
        """Write a phrase a line, its words separated by spaces."""
        path.write_text("".join(" ".join(phrase) + "\n" for phrase in self.phrases), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> PhraseMatcher:
        """Read a phrase a line, its words separated by spaces; `#` begins a comment line."""
        phrases: dict[Phrase, None] = {}
        for number, line in numbered_lines(path, "phrase list"):
            words = tuple(line.split())
            if not words or words[0].startswith("#"):
                continue
            if len(words) < 2:
                raise InputError(f"{path}:{number}: a phrase is two or more words with spaces between, not {line!r}.")
            phrases.setdefault(words)
        return PhraseMatcher(tuple(phrases))


def words_of(document: Document) -> tuple[Spans, list[str]]:
    """The words of a document and their spans."""
    if UnitKind.WORD not in document.char_spans:
        raise RecipeError(f"{document.id}: phrases are made of words, so put Words before Phrases.")
    spans = document.char_spans[UnitKind.WORD].spans
    text = document.text
    return spans, [text[start:end] for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True)]


def sentence_numbers(document: Document, words: Spans) -> Ints:
    """The sentence number of each word; 0 for all if sentences are not marked."""
    sentences = document.char_spans.get(UnitKind.SENTENCE, CharSpans(NO_SPANS)).spans
    return np.searchsorted(sentences.start, words.start, side="right")
