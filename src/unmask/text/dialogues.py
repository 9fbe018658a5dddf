"""Conversations: a list of turns becomes a document that knows its turns and who speaks each of them.

What arrives: a row with a field `turns`, a list of texts or of objects `{"role": "Q", "text": "…"}`; or the lines of a
plain text, one turn each. What leaves: a `Document` with TURN marks, or a `Dropped` that says what is wrong with which
turn. What never happens here: a conversation that lost one of its turns. Then the next turn would answer another one.

The turns stand in the text one below the other, so that whoever knows nothing of turns reads a text of several lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from unmask.records import Document, Dropped, Layer, Marks, Role, Spans
from unmask.text.reasons import Reason
from unmask.text.rows import Row, Rows

FIELD = "turns"
"""The field of a row that holds the conversation."""
_ROLES = {
    **dict.fromkeys(("q", "query", "user"), Role.QUERY),
    **dict.fromkeys(("r", "reply", "assistant"), Role.REPLY),
}
"""What a file may call those who speak, in small letters."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who speaks, and what. Without a name, the turns of a conversation alternate."""

    text: str
    role: str = ""


class _Wrong(Exception):
    """What is wrong with a conversation, as a person reads it."""


def rows_of_lines(rows: Rows) -> Rows:
    """Rows of plain text as rows of conversations: every line is a turn."""
    for row in rows:
        if isinstance(row, Row):
            yield Row(row.where, {FIELD: [line for text in row.fields.values() for line in str(text).split("\n")]})
        else:
            yield row


def conversation(row: Row, longest: int) -> Document | Dropped:
    """The conversation of a row; `longest` is the largest number of characters that it may have."""
    try:
        turns = _turns(row)
        if sum(len(turn.text) for turn in turns) > longest:
            raise _Wrong(f"it has more than {longest:,} characters; cut it into several")
        return _document(row.where, [turn.text for turn in turns], _roles(turns))
    except _Wrong as wrong:
        return Dropped(Reason.BAD_DIALOGUE, row.where, str(wrong))


def dialogue(name: str, texts: Sequence[str]) -> Document:
    """A conversation of these turns, in which the two sides alternate."""
    return _document(name, texts, _alternating(len(texts)))


def _document(name: str, texts: Sequence[str], roles: Sequence[Role]) -> Document:
    ends = list(accumulate(len(text) + 1 for text in texts))
    spans = Spans.of(*((end - len(text) - 1, end - 1) for text, end in zip(texts, ends, strict=True)))
    marks = {Layer.TURN: Marks(spans, tuple(role.value for role in roles))}
    return Document(name, "\n".join(texts), MappingProxyType(marks))


def _turns(row: Row) -> list[Turn]:
    if FIELD not in row.fields:
        have = ", ".join(map(repr, row.fields)) or "none"
        raise _Wrong(f"there is no field {FIELD!r}; the fields are {have}")
    found = row.fields[FIELD]
    if not isinstance(found, list):
        raise _Wrong(f"field {FIELD!r} holds {type(found).__name__}, not a list")
    if len(found) < _FEWEST:
        raise _Wrong(f"a dialogue has at least {_FEWEST} turns, this one has {len(found)}")
    return list(_each(found))


def _each(found: Sequence[object]) -> Iterator[Turn]:
    for number, item in enumerate(found, start=1):
        fields = item if isinstance(item, dict) else {"text": item}
        text, role = fields.get("text"), fields.get("role", "")
        if not isinstance(text, str):
            raise _Wrong(f"turn {number} has no text, but {type(item).__name__} {str(item)[:20]!r}")
        if not text.strip():
            raise _Wrong(f"turn {number} is empty")
        if role and str(role).lower() not in _ROLES:
            raise _Wrong(f"turn {number} has the role {str(role)[:20]!r}; known are Q and R (or user and assistant)")
        yield Turn(text.strip(), str(role).lower())


def _roles(turns: Sequence[Turn]) -> Sequence[Role]:
    """Who speaks each turn: as it is said, or in turns where nothing is."""
    unnamed = [number for number, turn in enumerate(turns, start=1) if not turn.role]
    if len(unnamed) == len(turns):
        return _alternating(len(turns))
    if unnamed:
        raise _Wrong(f"turn {unnamed[0]} has no role, although others have; name all or none")
    return [_ROLES[turn.role] for turn in turns]


def _alternating(count: int) -> Sequence[Role]:
    return [(Role.QUERY, Role.REPLY)[number % 2] for number in range(count)]
