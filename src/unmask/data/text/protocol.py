"""The protocols of annotators, which find units in a text.

The order is sentences, entities, words, phrases: words end at sentence borders, and phrases consist of words. The text
is never changed.
"""

from __future__ import annotations

from typing import Protocol

from unmask.core.records import CharSpans, Document


class Annotator(Protocol):
    """Adds the spans of one unit kind. A frozen dataclass that is its own configuration."""

    def __call__(self, document: Document) -> Document:
        """The same document with spans added."""

    def describe(self) -> str:
        """One line for the manifest. Annotators with equal lines give equal spans."""


class EntityFinder(Protocol):
    """A source of entities; `Entities` combines several."""

    def find(self, document: Document) -> CharSpans:
        """The labelled entities of a document."""

    def describe(self) -> str:
        """One line for the manifest."""
