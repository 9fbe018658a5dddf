"""Dialogues: a list of turns becomes a document with TURN spans and speakers.

A row has a field `turns`, a list of texts or of objects `{"role": "Q", "text": "…"}`; in plain text, each line is a
turn. A dialogue with an unusable turn is dropped whole, because the next turn would answer another one. The turns are
the lines of the document's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from unmask.core.records import CharSpans, Document, DroppedInput, Spans, Speaker, UnitKind
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.lines import RawRow, RawRows

TURNS_FIELD = "turns"
"""The field with the turns of a dialogue."""
_SPEAKERS = {
    **dict.fromkeys(("q", "query", "user"), Speaker.QUERY),
    **dict.fromkeys(("r", "reply", "assistant"), Speaker.REPLY),
}
"""Role names in files, in lower case."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. Without roles, the speakers of a dialogue alternate."""

    text: str
    role: str = ""


class _BadDialogue(Exception):
    """A dialogue is unusable; the message is its reason."""


def dialogue_rows(rows: RawRows) -> RawRows:
    """Rows of plain text as rows of dialogues: every line is a turn."""
    for row in rows:
        if isinstance(row, RawRow):
            yield RawRow(
                row.where, {TURNS_FIELD: [line for text in row.fields.values() for line in str(text).split("\n")]}
            )
        else:
            yield row


def parse_dialogue(row: RawRow, max_chars: int) -> Document | DroppedInput:
    """The dialogue of a row, of at most `max_chars` characters."""
    try:
        turns = _turns(row)
        if sum(len(turn.text) for turn in turns) > max_chars:
            raise _BadDialogue(f"it has more than {max_chars:,} characters; cut it into several")
        return _document(row.where, [turn.text for turn in turns], _speakers(turns))
    except _BadDialogue as wrong:
        return DroppedInput(DropReason.BAD_DIALOGUE, row.where, str(wrong))


def make_dialogue(name: str, texts: Sequence[str]) -> Document:
    """A dialogue of these turns with alternating speakers."""
    return _document(name, texts, _alternate_speakers(len(texts)))


def _document(name: str, texts: Sequence[str], roles: Sequence[Speaker]) -> Document:
    ends = list(accumulate(len(text) + 1 for text in texts))
    spans = Spans.of(*((end - len(text) - 1, end - 1) for text, end in zip(texts, ends, strict=True)))
    marks = {UnitKind.TURN: CharSpans(spans, tuple(role.value for role in roles))}
    return Document(name, "\n".join(texts), MappingProxyType(marks))


def _turns(row: RawRow) -> list[Turn]:
    if TURNS_FIELD not in row.fields:
        have = ", ".join(map(repr, row.fields)) or "none"
        raise _BadDialogue(f"there is no field {TURNS_FIELD!r}; the fields are {have}")
    found = row.fields[TURNS_FIELD]
    if not isinstance(found, list):
        raise _BadDialogue(f"field {TURNS_FIELD!r} holds {type(found).__name__}, not a list")
    if len(found) < _FEWEST:
        raise _BadDialogue(f"a dialogue has at least {_FEWEST} turns, this one has {len(found)}")
    return list(_parse_turns(found))


def _parse_turns(found: Sequence[object]) -> Iterator[Turn]:
    for number, item in enumerate(found, start=1):
        fields = item if isinstance(item, dict) else {"text": item}
        text, role = fields.get("text"), fields.get("role", "")
        if not isinstance(text, str):
            raise _BadDialogue(f"turn {number} has no text, but {type(item).__name__} {str(item)[:20]!r}")
        if not text.strip():
            raise _BadDialogue(f"turn {number} is empty")
        if role and str(role).lower() not in _SPEAKERS:
            raise _BadDialogue(
                f"turn {number} has the role {str(role)[:20]!r}; known are Q and R (or user and assistant)"
            )
        yield Turn(text.strip(), str(role).lower())


def _speakers(turns: Sequence[Turn]) -> Sequence[Speaker]:
    """The speaker of each turn: as named, or alternating if no turn has a role."""
    unnamed = [number for number, turn in enumerate(turns, start=1) if not turn.role]
    if len(unnamed) == len(turns):
        return _alternate_speakers(len(turns))
    if unnamed:
        raise _BadDialogue(f"turn {unnamed[0]} has no role, although others have; name all or none")
    return [_SPEAKERS[turn.role] for turn in turns]


def _alternate_speakers(count: int) -> Sequence[Speaker]:
    return [(Speaker.QUERY, Speaker.REPLY)[number % 2] for number in range(count)]
