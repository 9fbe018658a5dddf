"""Word segmentation: Chinese by a segmenter, everything else by the rules of `characters.py`.

Every visible character is in exactly one word, no word contains whitespace or crosses a sentence border. The segmenter
reads the whole text in one call; its pieces count only where they contain a Chinese character (T恤 and 卡拉OK too).
Whole-word masking uses these spans and never segments again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Bits, Bools, CharSpans, Document, Ints, Spans, UnitKind
from unmask.data.text.units.characters import CharClass, char_classes, code_points, joins_previous
from unmask.data.text.units.segmenters import Segmenter, default_segmenter


@dataclass(frozen=True, slots=True)
class Words:
    """Marks words. The segmenter runs only on texts with Chinese characters."""

    segmenter: Segmenter = field(default_factory=default_segmenter)

    def __call__(self, document: Document) -> Document:
        """Add WORD marks."""
        codes = code_points(document.text)
        kinds = char_classes(codes)
        joins = joins_previous(codes, kinds)
        if (kinds == CharClass.HAN).any():
            lengths = piece_lengths(self.segmenter.cut(document.text), document, self.segmenter)
            join_pieces(joins, kinds, lengths)
        return document.with_char_spans(UnitKind.WORD, CharSpans(word_spans(joins, kinds, document)))

    def describe(self) -> str:
        """One line for the manifest."""
        return f"words by {self.segmenter.name} {self.segmenter.version}"


def piece_lengths(pieces: Sequence[str], document: Document, segmenter: Segmenter) -> Ints:
    """The length of each piece; a segmenter whose pieces are not the text is refused."""
    lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    if lengths.sum() != len(document.text):
        raise RecipeError(
            f"{document.id}: a segmenter's words, joined, must be the text again, but {segmenter.name} returned "
            f"{lengths.sum()} characters for {len(document.text)}. Make it return white space too."
        )
    return lengths[lengths > 0]


def join_pieces(joins: Bools, kinds: Bits, lengths: Ints) -> None:
    """Join the characters inside each piece with a Chinese character, never across whitespace."""
    starts = np.cumsum(lengths) - lengths
    chinese_piece = np.logical_or.reduceat(kinds == CharClass.HAN, starts)
    inside = np.repeat(chinese_piece, lengths)
    inside[starts] = False
    visible = kinds != CharClass.SPACE
    inside[1:] &= visible[1:] & visible[:-1]
    joins |= inside


def word_spans(joins: Bools, kinds: Bits, document: Document) -> Spans:
    """The spans of words, from the characters that join the one before them."""
    apart = ~joins
    apart[:1] = True
    sentences = document.char_spans.get(UnitKind.SENTENCE)
    if sentences is not None:
        apart[sentences.spans.start] = True
        apart[sentences.spans.end[sentences.spans.end < len(apart)]] = True
    start = np.flatnonzero(apart)
    end = np.append(start[1:], len(apart))[: len(start)]
    visible = kinds[start] != CharClass.SPACE
    return Spans(start[visible], end[visible])
