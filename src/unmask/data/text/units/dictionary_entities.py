"""Dictionary entities: all terms of a list, found in one pass (Aho and Corasick, 1975).

Where several terms begin, the longest wins. A term inside a longer spelled word is not found: `art` is not in `cart`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ahocorasick_rs import AhoCorasick, MatchKind

from unmask.core.errors import InputError
from unmask.core.records import CharSpans, Document, Ints
from unmask.data.text.files.word_lists import TermEntry
from unmask.data.text.units.characters import char_classes, code_points, joins_previous
from unmask.data.text.units.given_entities import Entity, to_spans


@dataclass(frozen=True, slots=True)
class TermMatcher:
    """Finds the terms of a dictionary, case-sensitively."""

    terms: tuple[TermEntry, ...]
    _automaton: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.terms or not all(term.text for term in self.terms):
            raise InputError("Terms: a dictionary needs at least one term, and none may be empty.")
        automaton = AhoCorasick([term.text for term in self.terms], matchkind=MatchKind.Standard)
        object.__setattr__(self, "_automaton", automaton)

    def __reduce__(self) -> tuple[type[TermMatcher], tuple[tuple[TermEntry, ...]]]:
        return TermMatcher, (self.terms,)  # another process builds its own automaton

    def find(self, document: Document) -> CharSpans:
        """The terms in a text."""
        # Overlapping matches too: a term inside a word must not hide a valid one that begins in it.
        found = self._automaton.find_matches_as_indexes(document.text, overlapping=True)
        if not found:
            return to_spans(())
        matches = np.asarray(found, dtype=np.int64)
        return to_spans(tuple(self._longest(_at_word_boundaries(document.text, matches))))

    def describe(self) -> str:
        """One line for the manifest."""
        digest = hashlib.blake2b(repr(self.terms).encode(), digest_size=8).hexdigest()
        return f"{len(self.terms)} terms {digest}"

    def _longest(self, matches: Ints) -> Iterator[Entity]:
        """The matches from left to right, the longest at each place, without overlaps."""
        last_end = 0
        order = np.lexsort((-matches[:, 2], matches[:, 1]))
        for which, start, end in matches[order].tolist():
            if start >= last_end:
                yield start, end, self.terms[which].label
                last_end = end


def _at_word_boundaries(text: str, matches: Ints) -> Ints:
    """The matches that do not begin or end inside a spelled word."""
    codes = code_points(text)
    inside = np.append(joins_previous(codes, char_classes(codes)), False)
    kept: Ints = matches[~(inside[matches[:, 1]] | inside[matches[:, 2]])]
    return kept
