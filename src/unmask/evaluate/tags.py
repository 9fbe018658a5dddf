"""Scores of a tag for each token: entities where the tags spell entities, tokens where they do not.

What arrives: true and said tags, row by row. What leaves: precision, recall and F1 of whole entities, and the share of
right tags. What never happens here: repairing. A broken sequence is read as the definition reads it.

An entity counts only if its type, its first and its last token are all right (Tjong Kim Sang and De Meulder, 2003).
The definitions differ in what they make of sequences that break the rules of their scheme, such as an I- without a B-.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from unmask.evaluate.metrics import Scores

TagRows: TypeAlias = Sequence[Sequence[str]]


class Scheme(Enum):
    """How entities are read from tags."""

    CONLL = "as the CoNLL script"
    """BIO, IOB1 and BIOES alike: an I- or E- that continues nothing begins an entity (conlleval; seqeval's default)."""
    STRICT_BIO = "strict BIO"
    """Only what begins with B- is an entity (seqeval's strict IOB2)."""
    STRICT_BIOES = "strict BIOES"
    """Only S-, or B- to E- without a break, is an entity (seqeval's strict IOBES)."""
    FREE = "tags without entities"
    """Parts of speech and the like: tokens are judged one by one."""


class Entity(NamedTuple):
    """A stretch of tokens with a type; `first` and `last` both belong to it."""

    type: str
    first: int
    last: int


class _Mark(NamedTuple):
    """A tag, taken apart."""

    letter: str
    type: str


_TAG = re.compile(r"([BIESMLU])(?:-(.*))?", re.DOTALL)
_OTHER_LETTERS = MappingProxyType({"M": "I", "L": "E", "U": "S"})  # BMES and BILOU are BIOES in other letters
_OUTSIDE = _Mark("O", "")
_UNTYPED = "_"
_WHOLE = re.compile(r"S|BI*E")


def scheme_of(tags: Iterable[str]) -> Scheme:
    """How tags ask to be judged: as entities if they are all O or letter-and-type, such as B-PER, else one by one."""
    inside = {tag for tag in tags if tag != "O"}
    spelled = bool(inside) and all(_TAG.fullmatch(tag) for tag in inside)
    return Scheme.CONLL if spelled else Scheme.FREE


def entities(tags: Sequence[str], scheme: Scheme) -> list[Entity]:
    """The entities of one row, from left to right. Free tags have none."""
    if scheme is Scheme.FREE:
        return []
    marks = [_mark(tag) for tag in tags]
    return [entity for entity in _stretches(marks) if _counts(marks[entity.first : entity.last + 1], scheme)]


def tagging(truth: TagRows, said: TagRows, scheme: Scheme) -> Scores:
    """F1, precision and recall of entities, and F1 as a mean over types, if tags spell any; the share of right tags.

    A score that would divide nothing by nothing is 0, as the CoNLL script prints it.
    """
    _need_tags(truth, said)
    right = sum(a == b for true, ours in zip(truth, said, strict=True) for a, b in zip(true, ours, strict=True))
    of_entities = {} if scheme is Scheme.FREE else _of_entities(_counted(truth, said, scheme))
    return MappingProxyType(of_entities | {"accuracy": right / sum(map(len, truth))})


def by_type(truth: TagRows, said: TagRows, scheme: Scheme) -> Mapping[str, Scores]:
    """F1, precision and recall of each type of entity that occurs, true or said, in alphabetical order."""
    _need_tags(truth, said)
    counts = _counted(truth, said, scheme)
    return MappingProxyType({kind: MappingProxyType(_shares(*counts[kind])) for kind in counts})


def baseline(known: TagRows, truth: TagRows, scheme: Scheme) -> Scores:
    """What saying the most frequent of the `known` tags everywhere scores. That tag is mostly O: no entity is found."""
    [(majority, _)] = Counter(tag for row in known for tag in row).most_common(1)
    return tagging(truth, [[majority] * len(row) for row in truth], scheme)


def _mark(tag: str) -> _Mark:
    found = _TAG.fullmatch(tag)
    if found is None:
        return _OUTSIDE
    letter, kind = found.groups()
    return _Mark(_OTHER_LETTERS.get(letter, letter), kind or _UNTYPED)


def _stretches(marks: Sequence[_Mark]) -> Iterator[Entity]:
    """Longest stretches of marks with no border inside. Every definition's entities are among them."""
    first = 0
    for place, (before, here, after) in enumerate(zip([_OUTSIDE, *marks], marks, [*marks[1:], _OUTSIDE], strict=False)):
        if _border(before, here):
            first = place
        if here != _OUTSIDE and _border(here, after):
            yield Entity(here.type, first, place)


def _border(left: _Mark, right: _Mark) -> bool:
    """Whether an entity cannot go on from one mark to the next. What is outside has no type, so it borders on all."""
    return left.type != right.type or left.letter in "ES" or right.letter in "BS"


def _counts(marks: Sequence[_Mark], scheme: Scheme) -> bool:
    letters = "".join(mark.letter for mark in marks)
    match scheme:
        case Scheme.STRICT_BIO:
            return letters.startswith("B")
        case Scheme.STRICT_BIOES:
            return _WHOLE.fullmatch(letters) is not None
        case _:
            return True


def _counted(truth: TagRows, said: TagRows, scheme: Scheme) -> dict[str, tuple[int, int, int]]:
    """For each type: how many entities are right, how many are said, how many are true."""
    true = {(row, entity) for row, tags in enumerate(truth) for entity in entities(tags, scheme)}
    ours = {(row, entity) for row, tags in enumerate(said) for entity in entities(tags, scheme)}
    right, found, there = (Counter(entity.type for _, entity in some) for some in (true & ours, ours, true))
    return {kind: (right[kind], found[kind], there[kind]) for kind in sorted(found.keys() | there.keys())}


def _of_entities(counts: Mapping[str, tuple[int, int, int]]) -> dict[str, float]:
    """All types together, and the mean of their F1."""
    right, found, there = (sum(each[which] for each in counts.values()) for which in range(3))
    mean = sum(_shares(*each)["entity_f1"] for each in counts.values()) / max(len(counts), 1)
    return _shares(right, found, there) | {"entity_macro_f1": mean}


def _shares(right: int, found: int, there: int) -> dict[str, float]:
    return {
        "entity_f1": 2 * right / max(found + there, 1),
        "entity_precision": right / max(found, 1),
        "entity_recall": right / max(there, 1),
    }


def _need_tags(truth: TagRows, said: TagRows) -> None:
    assert len(truth) == len(said) > 0, f"{len(said)} tagged rows for {len(truth)} rows"
    for row, (true, ours) in enumerate(zip(truth, said, strict=True)):
        assert len(true) == len(ours), f"row {row}: {len(ours)} tags for {len(true)} tokens"
    assert any(truth), "no token to judge"
