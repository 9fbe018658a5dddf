"""Tag schemes for entities: detection, allowed transitions, and entities read from tags.

Tags that break the rules of their scheme are trained on and scored as they are. An entity of type PER over three words:

    BIO     B-PER I-PER I-PER      as in CoNLL 2002 and most files since
    IOB1    I-PER I-PER I-PER      B-PER only right after another PER (Ramshaw and Marcus, 1995; CoNLL 2003)
    BIOES   B-PER I-PER E-PER      S-PER for one word; BMES and BILOU are the same in other letters
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from unmask.core.errors import InputError
from unmask.core.records import Bools

TagRows: TypeAlias = Sequence[Sequence[str]]
OUTSIDE = "O"
_TAG = re.compile(r"([BIESMLU])(?:-(.+))?", re.DOTALL)
_OTHER_LETTERS = {"M": "I", "L": "E", "U": "S"}
_FAMILIES = ("BI", "BIES", "BMES", "BILU")
_MIXED = 0.2
"""Above this fraction of entities that begin as in another scheme, a file counts as a mixture and is refused."""


class TagScheme(StrEnum):
    """The tag scheme of a file."""

    BIO = "BIO"
    IOB1 = "IOB1"
    BIOES = "BIOES"
    FREE = "free tags"
    """Tags without entities, such as parts of speech: any tag may follow any other."""


class ParsedTag(NamedTuple):
    """A tag as its BIOES letter and its type."""

    letter: str
    type: str


class EntitySpan(NamedTuple):
    """An entity: its type and its range of words, the end exclusive."""

    type: str
    start: int
    end: int


class AllowedTransitions(NamedTuple):
    """Which tags may be first, which may follow which (left, right), and which may be last."""

    start: Bools
    step: Bools
    end: Bools


_NOTHING = ParsedTag(OUTSIDE, "")
_UNTYPED = "_"


@lru_cache(maxsize=4096)
def parse_tag(tag: str) -> ParsedTag:
    """Split a tag into letter and type. Tags without a type, as in word segmentation, share one."""
    found = _TAG.fullmatch(tag)
    return ParsedTag(_OTHER_LETTERS.get(found[1], found[1]), found[2] or _UNTYPED) if found else _NOTHING


def detect_scheme(rows: TagRows, where: Sequence[str]) -> TagScheme:
    """The scheme of a training file; refuses a mixture of schemes at the first line that does not fit."""
    tags = {tag for row in rows for tag in row} - {OUTSIDE}
    spelled = {tag for tag in tags if _TAG.fullmatch(tag)}
    typed = {tag for tag in spelled if "-" in tag}
    if not tags or (spelled != tags and not typed):
        return TagScheme.FREE
    odd = tags - (typed or spelled)
    if odd:
        _raise_mixed_schemes(rows, where, lambda _, tag: tag in odd, f"while others are like {min(typed)!r}")
    family = _family(tags)
    if not family:
        letters = ", ".join(sorted({tag[0] for tag in tags}))
        _raise_mixed_schemes(rows, where, lambda _, tag: tag[0] in "EMLU", f"and the tags begin with {letters}")
    return _by_beginnings(rows, where) if family == "BI" else TagScheme.BIOES


def _family(tags: set[str]) -> str:
    """The letters of the scheme as used in this file; empty if they belong to no single scheme."""
    letters = {tag[0] for tag in tags if tag != OUTSIDE}
    return next((family for family in _FAMILIES if letters <= set(family)), "")


def _begins(before: str, tag: str) -> bool:
    """Whether an entity begins here that does not directly follow another of its type."""
    return tag != OUTSIDE and parse_tag(before).type != parse_tag(tag).type


def _by_beginnings(rows: TagRows, where: Sequence[str]) -> TagScheme:
    letters = Counter(tag[0] for row in rows for before, tag in _pairs(row) if _begins(before, tag))
    rare = min("BI", key=lambda letter: letters[letter])
    if letters[rare] > _MIXED * letters.total():
        reason = f"and begins an entity, as do {letters[rare]:,} of {letters.total():,}; the others begin otherwise"
        _raise_mixed_schemes(rows, where, lambda before, tag: tag[0] == rare and _begins(before, tag), reason)
    return TagScheme.IOB1 if rare == "B" else TagScheme.BIO


def _pairs(row: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each tag with its predecessor."""
    return zip((OUTSIDE, *row), row, strict=False)


def _raise_mixed_schemes(rows: TagRows, where: Sequence[str], odd: Callable[[str, str], bool], why: str) -> NoReturn:
    pairs = ((place, word, *pair) for place, row in zip(where, rows, strict=True) for word, pair in _numbered(row))
    place, word, tag = next((place, word, tag) for place, word, before, tag in pairs if odd(before, tag))
    raise InputError(
        f"{place}: word {word} has the tag {tag!r}, {why}. Tags of several schemes are mixed; write all entities in "
        "one of BIO, IOB1, BIOES."
    )


def _numbered(row: Sequence[str]) -> Iterator[tuple[int, tuple[str, str]]]:
    return enumerate(_pairs(row), start=1)


def all_tags(tags: set[str], scheme: TagScheme) -> tuple[str, ...]:
    """All tags of the entity types of a training file, in order, including those that do not occur in it."""
    if scheme is TagScheme.FREE:
        return tuple(sorted(tags))
    inside = tags - {OUTSIDE}
    types = sorted({tag[1:] for tag in inside})
    spelled = tuple(letter + type for type in types for letter in _family(inside))
    return ((OUTSIDE,) if OUTSIDE in tags or types != [""] else ()) + spelled


def allowed_transitions(labels: Sequence[str], scheme: TagScheme) -> AllowedTransitions:
    """The transitions that a scheme allows."""
    marks = [parse_tag(label) for label in labels]
    step = np.array([[_follows(left, right, scheme) for right in marks] for left in marks], dtype=np.bool_)
    start = np.array([_follows(_NOTHING, mark, scheme) for mark in marks], dtype=np.bool_)
    end = np.array([_follows(mark, _NOTHING, scheme) for mark in marks], dtype=np.bool_)
    return AllowedTransitions(start, step, end)


def _follows(left: ParsedTag, right: ParsedTag, scheme: TagScheme) -> bool:
    same = left.type == right.type and _NOTHING not in (left, right)
    match scheme:
        case TagScheme.BIO:
            return right.letter != "I" or same
        case TagScheme.IOB1:
            return right.letter != "B" or same
        case TagScheme.BIOES:
            return right.letter in "IE" and same if left.letter in "BI" else right.letter not in "IE"
        case TagScheme.FREE:
            return True


def entities(tags: Sequence[str]) -> list[EntitySpan]:
    """The entities of a row as conlleval reads them: an I- that continues nothing begins an entity."""
    marks = [_NOTHING, *map(parse_tag, tags), _NOTHING]
    borders = [place for place, (a, b) in enumerate(pairwise(marks)) if _is_boundary(a, b)]
    return [EntitySpan(marks[a + 1].type, a, b) for a, b in pairwise(borders) if marks[a + 1] != _NOTHING]


def _is_boundary(left: ParsedTag, right: ParsedTag) -> bool:
    """Whether no entity can contain both of two adjacent tags."""
    return left.type != right.type or left.letter in "ES" or right.letter in "BS"
