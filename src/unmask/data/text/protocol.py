"""The protocols of this folder: an annotator finds units on a text, once.

What arrives: a document, perhaps with marks that other annotators left. What leaves: the same text with one layer of
marks more. What never happens here: changing the text; that is `clean.py`'s work, and it comes first.

The order is sentences, then entities, words and phrases: words stop at sentence borders, phrases are made of words.
"""

from __future__ import annotations

from typing import Protocol

from unmask.core.records import CharSpans, Document


class Annotator(Protocol):
    """Adds the marks of one layer. A frozen dataclass that is its own configuration."""

    def __call__(self, document: Document) -> Document:
        """The same document with marks added."""

    def describe(self) -> str:
        """One line for the manifest. Two annotators with the same line give the same marks."""


class EntityFinder(Protocol):
    """One way to find entities; `Entities` combines several."""

    def find(self, document: Document) -> CharSpans:
        """The entities of this document, each with a label."""

    def describe(self) -> str:
        """One line for the manifest."""
