"""Entity annotations in characters of a text, as BIO tags of its words.

Words are runs of letters and digits; every other character, and every Chinese one, is a word of its own. An entity that
begins or ends inside a word is widened to the whole word. Overlapping entities are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unmask.core.errors import InputError
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.units.characters import CharClass, char_classes, code_points, joins_previous
from unmask.finetuning.data.dataset import Texts
from unmask.finetuning.data.table_file import json_type_name, label_text
from unmask.finetuning.data.tagging.schemes import OUTSIDE

START, END, TYPE, TEXT = ("start", "begin", "start_offset"), ("end", "end_offset"), ("label", "type", "entity"), "text"
"""Usual names of the parts of an entity. Its end is exclusive."""


class TextWords(NamedTuple):
    """Words of a text and their offsets in characters."""

    words: Texts
    begin: tuple[int, ...]


class ConvertedTags(NamedTuple):
    """Tags of words, and how many entities were widened to whole words."""

    tags: Texts
    num_widened: int


def split_words(text: str, where: str) -> TextWords:
    """The words of a running text, without white space."""
    codes = code_points(check_surrogates(text, where))
    kinds = char_classes(codes)
    begins, seen = ~joins_previous(codes, kinds), kinds != CharClass.SPACE
    starts = np.flatnonzero(begins & seen)
    ends = np.flatnonzero(np.append(begins[1:], True) & seen) + 1 if len(codes) else starts
    return _words(text, list(zip(starts.tolist(), ends.tolist(), strict=True)))


def split_for_tags(text: str, tags: int, where: str) -> TextWords:
    """The pieces of a text with this many tags: its characters, or its parts between spaces."""
    if tags == len(text):
        return _words(text, [(place, place + 1) for place in range(len(text))])
    pieces = [match.span() for match in re.finditer(r"\S+", text)]
    if tags != len(pieces):
        raise InputError(
            f"{where}: characters of the text: {len(text):,}, words between spaces: {len(pieces):,}, tags: {tags:,}. "
            "Each character or each word needs one tag; correct the line, or remove it."
        )
    return _words(text, pieces)


def _words(text: str, spans: Sequence[tuple[int, int]]) -> TextWords:
    return TextWords(tuple(text[start:end] for start, end in spans), tuple(start for start, _ in spans))


def tags_from_entities(text: str, cut: TextWords, entities: Sequence[object], where: str) -> ConvertedTags:
    """BIO tags of words from entities in characters."""
    begin = np.array(cut.begin, dtype=np.int64)
    ends = begin + np.array([len(word) for word in cut.words], dtype=np.int64)
    tags, widened = [OUTSIDE] * len(cut.words), 0
    for entity in entities:
        start, end, kind = _entity(entity, text, where)
        touched = np.flatnonzero((begin < end) & (ends > start)).tolist()
        if not touched:
            raise InputError(f"{where}: the entity at {start} to {end} holds no word. Correct the line.")
        if any(tags[word] != OUTSIDE for word in touched):
            raise InputError(
                f"{where}: two entities hold the word {cut.words[touched[0]]!r} at {start}. A word has one tag; keep "
                "one of them."
            )
        widened += bool(begin[touched[0]] < start or ends[touched[-1]] > end)
        for word in touched:
            tags[word] = f"{'B' if word == touched[0] else 'I'}-{kind}"
    return ConvertedTags(tuple(tags), widened)


def _entity(entity: object, text: str, where: str) -> tuple[int, int, str]:
    """Start, end and type of an entity, checked against the text."""
    if not isinstance(entity, Mapping):
        raise InputError(
            f"{where}: an entity should be an object with start, end and label, found {json_type_name(entity)}."
        )
    start, end, kind = (next((entity[name] for name in names if name in entity), "") for names in (START, END, TYPE))
    label = label_text(kind)
    if not (type(start) is int and type(end) is int and label):
        raise InputError(
            f"{where}: an entity needs start and end (whole numbers) and a label, found {', '.join(map(str, entity))}."
        )
    if not 0 <= start < end <= len(text):
        raise InputError(
            f"{where}: an entity is at {start} to {end}, and the text has {len(text):,} characters. Correct the "
            "line; the end is exclusive."
        )
    written = entity.get(TEXT, text[start:end])
    if written != text[start:end]:
        raise InputError(
            f"{where}: the entity {written!r} is not at {start} to {end}, where the text has "
            f"{text[start:end]!r}. Correct the line."
        )
    return start, end, label
