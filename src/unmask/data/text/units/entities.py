"""Entities: names of people, places and things, each with a label.

They come from spans in the document (`GivenEntities`), from a dictionary (`TermMatcher`), or from the name tags of the
segmenter. `Entities` combines finders: where two entities overlap, the earlier finder wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from unmask.core.records import Bools, CharSpans, Document, Ints, Spans, UnitKind
from unmask.data.text.protocol import EntityFinder
from unmask.data.text.units.characters import CharClass, char_classes, code_points, joins_previous
from unmask.data.text.units.given_entities import Entity, resolve_overlaps, to_spans
from unmask.data.text.units.segmenters import PosTagger, default_segmenter
from unmask.data.text.units.words import join_pieces, piece_lengths, word_spans

NAME_TAGS = {"nr": "person", "nrfg": "person", "nrt": "person", "ns": "place", "nt": "organisation", "nz": "name"}
"""The segmenter's tags for names, and their labels."""
_NONE = CharSpans(Spans.of())


@dataclass(frozen=True, slots=True)
class Entities:
    """Combines entity finders. Where two entities overlap, the earlier finder wins."""

    finders: tuple[EntityFinder, ...]

    def __call__(self, document: Document) -> Document:
        """Set the ENTITY marks."""
        return document.with_char_spans(UnitKind.ENTITY, merge_spans(finder.find(document) for finder in self.finders))

    def describe(self) -> str:
        """One line for the manifest."""
        return "entities: " + ", then ".join(finder.describe() for finder in self.finders)


@dataclass(frozen=True, slots=True)
class GivenEntities:
    """The entities of the input document."""

    def find(self, document: Document) -> CharSpans:
        """The entities that are marked already."""
        return document.char_spans.get(UnitKind.ENTITY, _NONE)

    def describe(self) -> str:
        """One line for the manifest."""
        return "given with the document"


@dataclass(frozen=True, slots=True)
class TaggerEntities:
    """The segmenter's name tags, for texts whose words are not needed or come from elsewhere."""

    tagger: PosTagger = field(default_factory=default_segmenter)

    def find(self, document: Document) -> CharSpans:
        """The words that are tagged as names."""
        return WordsWithEntities(self.tagger)(Document(document.id, document.text)).char_spans[UnitKind.ENTITY]

    def describe(self) -> str:
        """One line for the manifest."""
        return f"name tags of {self.tagger.name} {self.tagger.version}"


@dataclass(frozen=True, slots=True)
class WordsWithEntities:
    """Marks words, and names among them as entities. Entities marked before take precedence."""

    tagger: PosTagger = field(default_factory=default_segmenter)

    def __call__(self, document: Document) -> Document:
        """Add WORD and ENTITY marks from one call of the tagger."""
        codes = code_points(document.text)
        kinds = char_classes(codes)
        joins = joins_previous(codes, kinds)
        names = _NONE
        if (kinds == CharClass.HAN).any():
            tagged = self.tagger.tag(document.text)
            lengths = piece_lengths([piece for piece, _ in tagged], document, self.tagger)
            join_pieces(joins, kinds, lengths)
            names = _name_spans(lengths, [tag for piece, tag in tagged if piece])
        words = word_spans(joins, kinds, document)
        earlier = document.char_spans.get(UnitKind.ENTITY, _NONE)
        marked = document.with_char_spans(UnitKind.WORD, CharSpans(words))
        return marked.with_char_spans(UnitKind.ENTITY, merge_spans((earlier, _whole_words(names, words))))

    def describe(self) -> str:
        """One line for the manifest."""
        return f"words and names by {self.tagger.name} {self.tagger.version}"


def merge_spans(found: Iterable[CharSpans]) -> CharSpans:
    """The union of several sets of spans; of two that overlap, the one from the earlier set is kept."""
    full = [marks for marks in found if len(marks.spans)]
    return full[0] if len(full) == 1 else to_spans(resolve_overlaps(chain.from_iterable(map(_as_entities, full))))


def _as_entities(marks: CharSpans) -> Iterable[Entity]:
    labels = marks.labels or ("",) * len(marks.spans)
    return zip(marks.spans.start.tolist(), marks.spans.end.tolist(), labels, strict=True)


def _name_spans(lengths: Ints, tags: Sequence[str]) -> CharSpans:
    places = [place for place, tag in enumerate(tags) if tag in NAME_TAGS]
    end = np.cumsum(lengths)[places]
    return CharSpans(Spans(end - lengths[places], end), tuple(NAME_TAGS[tags[place]] for place in places))


def _whole_words(names: CharSpans, words: Spans) -> CharSpans:
    """The names that are words after sentence borders and character rules were applied."""
    if not len(words):
        return _NONE
    at = np.minimum(np.searchsorted(words.start, names.spans.start), len(words) - 1)
    whole: Bools = (words.start[at] == names.spans.start) & (words.end[at] == names.spans.end)
    labels = tuple(label for label, keep in zip(names.labels, whole.tolist(), strict=True) if keep)
    return CharSpans(Spans(names.spans.start[whole], names.spans.end[whole]), labels)
