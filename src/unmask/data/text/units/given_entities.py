"""Entities of the input: `[start, end, label]` or `{"start", "end", "label"}`, in characters.

An unusable entity becomes a `DroppedInput`; its document is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from unmask.core.records import CharSpans, DroppedInput, Spans
from unmask.data.text.drop_reasons import DropReason

Entity: TypeAlias = tuple[int, int, str]


def given_entities(value: object, where: str, length: int) -> tuple[CharSpans, list[DroppedInput]]:
    """The entities inside a text of `length` characters; of two that overlap, the first one listed is kept."""
    kept: list[Entity] = []
    dropped: list[DroppedInput] = []
    for entry in value if isinstance(value, list | tuple) else [value]:
        entity = _parse_entity(entry)
        if entity is None:
            dropped.append(DroppedInput(DropReason.BAD_ENTITY, where, f"{entry!r} is not start, end and label"))
        elif not 0 <= entity[0] < entity[1] <= length:
            dropped.append(
                DroppedInput(DropReason.BAD_ENTITY, where, f"{entry!r} does not lie inside {length} characters")
            )
        else:
            kept.append(entity)
    apart = resolve_overlaps(kept)
    stay = set(apart)
    dropped += [
        DroppedInput(DropReason.BAD_ENTITY, where, f"{list(entity)!r} overlaps another entity")
        for entity in kept
        if entity not in stay
    ]
    return to_spans(apart), dropped


def resolve_overlaps(entities: Iterable[Entity]) -> list[Entity]:
    """Entities without overlaps, in text order: earlier ones in the list take precedence."""
    apart: list[Entity] = []
    for entity in entities:
        place = bisect_left(apart, entity)
        after_previous = place == 0 or apart[place - 1][1] <= entity[0]
        before_next = place == len(apart) or entity[1] <= apart[place][0]
        if after_previous and before_next:
            apart.insert(place, entity)
    return apart


def to_spans(entities: Sequence[Entity]) -> CharSpans:
    """Spans of entities in text order without overlaps."""
    return CharSpans(Spans.of(*((start, end) for start, end, _ in entities)), tuple(label for *_, label in entities))


def _parse_entity(entry: object) -> Entity | None:
    if isinstance(entry, dict):
        entry = [entry.get("start"), entry.get("end"), entry.get("label")]
    if not isinstance(entry, list | tuple) or len(entry) != 3:
        return None
    start, end, label = entry
    if type(start) is not int or type(end) is not int or not isinstance(label, str):
        return None
    return start, end, label
