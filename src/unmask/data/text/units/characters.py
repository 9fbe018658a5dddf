"""Character classes, and whether a character belongs to the word before it, as arrays.

The rules are a subset of UAX 29: runs of letters and digits are words, with an apostrophe between letters (don't) and a
point or comma between digits (3.14) inside them; marks stay with their base; an emoji with its joiners and skin tones
is one word, and so is a flag. Every other visible character is a word of its own, also each Chinese character: the
segmenter joins those.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.core.records import Bits, Bools

CodePoints: TypeAlias = npt.NDArray[np.uint32]


class CharClass:
    """Character classes for finding words, the rare ones last. Plain integers, because arrays hold them."""

    SPACE = 0
    """Whitespace and invisible characters; never part of a word."""
    OTHER = 1
    LETTER = 2
    DIGIT = 3
    HAN = 4
    HIRAGANA = 5
    KATAKANA = 6
    APOSTROPHE = 7
    POINT = 8
    MARK = 9
    """Belongs to the character before it: accents, variation selectors, joiners, skin tones."""
    FLAG = 10
    """One half of a flag."""
    PICTURE = 11
    """Emoji and other symbols, which a joiner can connect."""


_RARE = CharClass.MARK
_SHIFT = 4  # a pair of classes fits one byte
_JOINER = 0x200D
_RANGES = (
    (0x2E80, 0x2FDF, CharClass.HAN),
    (0x3005, 0x3007, CharClass.HAN),
    (0x3041, 0x309F, CharClass.HIRAGANA),
    (0x30A1, 0x30FF, CharClass.KATAKANA),
    (0x31F0, 0x31FF, CharClass.KATAKANA),
    (0x3400, 0x4DBF, CharClass.HAN),
    (0x4E00, 0x9FFF, CharClass.HAN),
    (0xF900, 0xFAFF, CharClass.HAN),
    (0xFF66, 0xFF9D, CharClass.KATAKANA),
    (0x1F1E6, 0x1F1FF, CharClass.FLAG),
    (0x1F3FB, 0x1F3FF, CharClass.MARK),
    (0x20000, 0x3FFFF, CharClass.HAN),
    (0xE0000, 0xE0FFF, CharClass.MARK),
)
_SINGLE = {
    "'": CharClass.APOSTROPHE,
    "’": CharClass.APOSTROPHE,
    ".": CharClass.POINT,
    ",": CharClass.POINT,
    "\u200b": CharClass.SPACE,
}
_WITHOUT_SPACES = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai, Lao, Burmese and Khmer letters: written without spaces and not segmented here, so each is a word of its own."""
_CATEGORIES = {
    "Z": CharClass.SPACE,
    "Cc": CharClass.SPACE,
    "L": CharClass.LETTER,
    "Nd": CharClass.DIGIT,
    "Nl": CharClass.DIGIT,
    "M": CharClass.MARK,
    "Cf": CharClass.MARK,
    "So": CharClass.PICTURE,
}


def code_points(text: str) -> CodePoints:
    """The code point of every character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def char_classes(codes: CodePoints) -> Bits:
    """The class of every character."""
    return _class_table().take(codes)


@cache
def _class_table() -> Bits:
    """The class of every code point: one megabyte, built once in a process."""
    table = np.full(0x110000, CharClass.OTHER, dtype=np.uint8)
    categories = [unicodedata.category(chr(code)) for code in range(0x20000)]
    kinds = {name: _CATEGORIES.get(name, _CATEGORIES.get(name[0], CharClass.OTHER)) for name in set(categories)}
    table[: len(categories)] = [kinds[name] for name in categories]
    for first, last in _WITHOUT_SPACES:
        letters = table[first : last + 1]
        letters[letters == CharClass.LETTER] = CharClass.OTHER
    for first, last, kind in _RANGES:
        within = table[first : last + 1]
        within[within != CharClass.MARK] = kind
    for character, kind in _SINGLE.items():
        table[ord(character)] = kind
    return table


@cache
def _pair_table() -> Bools:
    """Which adjacent classes join: `table[left << 4 | right]`."""
    table = np.zeros((1 << _SHIFT, 1 << _SHIFT), dtype=np.bool_)
    spelled = (CharClass.LETTER, CharClass.DIGIT)
    table[np.ix_(spelled, spelled)] = True
    for kind in (CharClass.HIRAGANA, CharClass.KATAKANA):
        table[kind, kind] = True
    table[CharClass.SPACE + 1 :, CharClass.MARK] = True
    return table.reshape(-1)


def joins_previous(codes: CodePoints, kinds: Bits) -> Bools:
    """Whether each character belongs to the word of the one before it, by the rules of spaced scripts."""
    joins = np.zeros(len(codes), dtype=np.bool_)
    if len(codes) < 2:
        return joins
    rare = kinds.max() >= _RARE
    bases = _base_classes(kinds) if rare else kinds
    joins[1:] = _pair_table().take((bases[:-1] << _SHIFT) | kinds[1:])
    _join_around(joins, bases, kinds, CharClass.APOSTROPHE, CharClass.LETTER)
    _join_around(joins, bases, kinds, CharClass.POINT, CharClass.DIGIT)
    if rare:
        _join_pictures(joins, codes, bases, kinds)
        _join_flags(joins, kinds)
    return joins


def _base_classes(kinds: Bits) -> Bits:
    """The class of each character as seen by the next one: a mark has the class of its base."""
    places = np.where(kinds == CharClass.MARK, 0, np.arange(len(kinds)))
    return kinds[np.maximum.accumulate(places)]


def _join_around(joins: Bools, bases: Bits, kinds: Bits, middle: int, side: int) -> None:
    """Join a sign with its two neighbors if both have the given class."""
    places = np.flatnonzero(kinds[1:-1] == middle) + 1
    inner = places[(bases[places - 1] == side) & (kinds[places + 1] == side)]
    joins[inner] = True
    joins[inner + 1] = True


def _join_pictures(joins: Bools, codes: CodePoints, bases: Bits, kinds: Bits) -> None:
    """Join two pictures with a zero-width joiner between them."""
    pictures = np.flatnonzero(kinds[1:] == CharClass.PICTURE) + 1
    tied = pictures[(codes[pictures - 1] == _JOINER) & (bases[pictures - 1] == CharClass.PICTURE)]
    joins[tied] = True


def _join_flags(joins: Bools, kinds: Bits) -> None:
    """Join the halves of flags in pairs, from the beginning of a run."""
    halves = np.flatnonzero(kinds == CharClass.FLAG)
    begins = np.diff(halves, prepend=-2) > 1
    first = np.maximum.accumulate(np.where(begins, halves, 0))
    joins[halves[(halves - first) % 2 == 1]] = True
