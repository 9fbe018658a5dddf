"""Entity-level precision, recall and F1 of tags (conlleval, seqeval), and token accuracy.

An entity is correct if its type, first and last token are correct (Tjong Kim Sang and De Meulder, 2003). Definitions
differ in how they read sequences that break the rules of their scheme, such as an I- without a B-; nothing is repaired.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from unmask.evaluation.metrics.classification import Scores

TagRows: TypeAlias = Sequence[Sequence[str]]


class ScoringScheme(Enum):
    """How entities are read from tags."""

    CONLL = "as the CoNLL script"
    """BIO, IOB1 and BIOES alike: an I- or E- that continues nothing begins an entity (conlleval; seqeval's default)."""
    STRICT_BIO = "strict BIO"
    """Only what begins with B- is an entity (seqeval's strict IOB2)."""
    STRICT_BIOES = "strict BIOES"
    """Only S-, or B- to E- without a break, is an entity (seqeval's strict IOBES)."""
    FREE = "tags without entities"
    """Tags without entities, such as parts of speech: token accuracy only."""


class Entity(NamedTuple):
    """An entity from token `first` to token `last`, both included."""

    type: str
    first: int
    last: int


class _ParsedTag(NamedTuple):
    """A tag as letter and type."""

    letter: str
    type: str


_TAG = re.compile(r"([BIESMLU])(?:-(.*))?", re.DOTALL)
_OTHER_LETTERS = MappingProxyType({"M": "I", "L": "E", "U": "S"})  # BMES and BILOU are BIOES in other letters
_OUTSIDE = _ParsedTag("O", "")
_UNTYPED = "_"
_WHOLE = re.compile(r"S|BI*E")


def scoring_scheme_for(tags: Iterable[str]) -> ScoringScheme:
    """The scoring scheme for tags: entities if all are O or letter-and-type such as B-PER, else token accuracy."""
    inside = {tag for tag in tags if tag != "O"}
    spelled = bool(inside) and all(_TAG.fullmatch(tag) for tag in inside)
    return ScoringScheme.CONLL if spelled else ScoringScheme.FREE


def entities(tags: Sequence[str], scheme: ScoringScheme) -> list[Entity]:
    """The entities of one row, from left to right. Free tags have none."""
    if scheme is ScoringScheme.FREE:
        return []
    marks = [_parse_tag(tag) for tag in tags]
    return [
        entity
        for entity in _candidate_entities(marks)
        if _is_valid_entity(marks[entity.first : entity.last + 1], scheme)
    ]


def tagging_metrics(truth: TagRows, predicted: TagRows, scheme: ScoringScheme) -> Scores:
    """Micro F1, precision, recall and macro F1 of entities, if the scheme has them, and token accuracy.

    Undefined scores are 0, as in conlleval.
    """
    _check_tags(truth, predicted)
    right = sum(a == b for true, ours in zip(truth, predicted, strict=True) for a, b in zip(true, ours, strict=True))
    of_entities = {} if scheme is ScoringScheme.FREE else _of_entities(_count_entities(truth, predicted, scheme))
    return MappingProxyType(of_entities | {"accuracy": right / sum(map(len, truth))})


def metrics_by_type(truth: TagRows, predicted: TagRows, scheme: ScoringScheme) -> Mapping[str, Scores]:
    """F1, precision and recall of each type of entity that occurs, true or predicted, in alphabetical order."""
    _check_tags(truth, predicted)
    counts = _count_entities(truth, predicted, scheme)
    return MappingProxyType({kind: MappingProxyType(_precision_recall_f1(*counts[kind])) for kind in counts})


def tagging_baseline(train: TagRows, truth: TagRows, scheme: ScoringScheme) -> Scores:
    """The baseline that predicts the most frequent training tag everywhere."""
    [(majority, _)] = Counter(tag for row in train for tag in row).most_common(1)
    return tagging_metrics(truth, [[majority] * len(row) for row in truth], scheme)


def _parse_tag(tag: str) -> _ParsedTag:
    found = _TAG.fullmatch(tag)
    if found is None:
        return _OUTSIDE
    letter, kind = found.groups()
    return _ParsedTag(_OTHER_LETTERS.get(letter, letter), kind or _UNTYPED)


def _candidate_entities(marks: Sequence[_ParsedTag]) -> Iterator[Entity]:
    """Maximal runs of tags without a boundary inside; the entities of every scheme are among them."""
    first = 0
    for place, (before, here, after) in enumerate(zip([_OUTSIDE, *marks], marks, [*marks[1:], _OUTSIDE], strict=False)):
        if _is_boundary(before, here):
            first = place
        if here != _OUTSIDE and _is_boundary(here, after):
            yield Entity(here.type, first, place)


def _is_boundary(left: _ParsedTag, right: _ParsedTag) -> bool:
    """Whether no entity can contain both of two adjacent tags."""
    return left.type != right.type or left.letter in "ES" or right.letter in "BS"


def _is_valid_entity(marks: Sequence[_ParsedTag], scheme: ScoringScheme) -> bool:
    letters = "".join(mark.letter for mark in marks)
    match scheme:
        case ScoringScheme.STRICT_BIO:
            return letters.startswith("B")
        case ScoringScheme.STRICT_BIOES:
            return _WHOLE.fullmatch(letters) is not None
        case _:
            return True


def _count_entities(truth: TagRows, predicted: TagRows, scheme: ScoringScheme) -> dict[str, tuple[int, int, int]]:
    """For each type: how many entities are correct, predicted and true."""
    true = {(row, entity) for row, tags in enumerate(truth) for entity in entities(tags, scheme)}
    ours = {(row, entity) for row, tags in enumerate(predicted) for entity in entities(tags, scheme)}
    right, found, there = (Counter(entity.type for _, entity in some) for some in (true & ours, ours, true))
    return {kind: (right[kind], found[kind], there[kind]) for kind in sorted(found.keys() | there.keys())}


def _of_entities(counts: Mapping[str, tuple[int, int, int]]) -> dict[str, float]:
    """All types together, and the mean of their F1."""
    right, found, there = (sum(each[which] for each in counts.values()) for which in range(3))
    mean = sum(_precision_recall_f1(*each)["entity_f1"] for each in counts.values()) / max(len(counts), 1)
    return _precision_recall_f1(right, found, there) | {"entity_macro_f1": mean}


def _precision_recall_f1(right: int, found: int, there: int) -> dict[str, float]:
    return {
        "entity_f1": 2 * right / max(found + there, 1),
        "entity_precision": right / max(found, 1),
        "entity_recall": right / max(there, 1),
    }


def _check_tags(truth: TagRows, predicted: TagRows) -> None:
    assert len(truth) == len(predicted) > 0, f"{len(predicted)} tagged rows for {len(truth)} rows"
    for row, (true, ours) in enumerate(zip(truth, predicted, strict=True)):
        assert len(true) == len(ours), f"row {row}: {len(ours)} tags for {len(true)} tokens"
    assert any(truth), "no token to score"
