"""Answers of extractive questions: the forms in which files write them, and their position in the passage.

An answer that is not at its given position is located by its text; one that does not occur in the passage is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.table_file import json_type_name

START, IMPOSSIBLE = "answer_start", "is_impossible"


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A piece of a passage, and the offset of its first character."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset of the character after it."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as written in a file. `has_start`: whether the file gives its position."""

    text: str
    start: int = 0
    has_start: bool = False


def gold_answers(row: RawRow, label: str) -> tuple[tuple[RawAnswer, ...], bool]:
    """The answers of a row, and whether it is marked as unanswerable; exactly one of the two holds."""
    written = tuple(one for one in _raw_answers(row, label) if one.text)
    impossible = _impossible(row, label)
    if bool(written) is impossible:
        raise InputError(f"{row.where}: {_contradiction(impossible)}")
    return written, impossible


def locate_answer(written: RawAnswer, passage: str, where: str) -> AnswerText:
    """The answer at its given position, or at the nearest occurrence of its text in the passage."""
    text, start = written.text, written.start
    if start >= 0 and passage.startswith(text, start):
        return AnswerText(text, start)
    found = [match.start() for match in re.finditer(f"(?={re.escape(text)})", passage)]
    if not found:
        raise InputError(
            f"{where}: the answer {_shorten(text)!r} does not occur in the passage. Copy it from there exactly, "
            "or remove the question."
        )
    return AnswerText(text, min(found, key=lambda place: abs(place - start)))


def _contradiction(impossible: bool) -> str:
    if impossible:
        return f"{IMPOSSIBLE!r} marks the question as unanswerable, but there is an answer. Remove one of the two."
    return (
        "the question has no answer. Add one, or remove the question; if the passage does not hold the answer, write "
        f'"{IMPOSSIBLE}": true.'
    )


def _impossible(row: RawRow, label: str) -> bool:
    """Whether the row is marked as unanswerable: by a column of its own, or by an empty list of texts."""
    flag = row.fields.get(IMPOSSIBLE)
    if isinstance(flag, str):
        return flag.strip().lower() in ("true", "1", "yes")
    answers = row.fields.get(label)
    return bool(flag) or (flag is None and isinstance(answers, dict) and answers.get("text") == [])


def _raw_answers(row: RawRow, label: str) -> Iterator[RawAnswer]:
    """The answers in all forms: a text, or texts and positions in lists or objects."""
    match row.fields.get(label):
        case None:
            return
        case str(text):
            yield _raw_answer(text, row.fields.get(START), row.where)
        case {"text": list(texts), **rest}:
            starts = rest.get(START)
            given = starts if isinstance(starts, list) else [None] * len(texts)
            if len(given) != len(texts):
                raise InputError(f"{row.where}: {len(texts)} answers, but {len(given)} start positions.")
            yield from (_raw_answer(text, start, row.where) for text, start in zip(texts, given, strict=True))
        case {"text": text, **rest}:
            yield _raw_answer(text, rest.get(START), row.where)
        case list(several):
            for one in several:
                fields = one if isinstance(one, dict) else {"text": one}
                yield _raw_answer(fields.get("text"), fields.get(START), row.where)
        case other:
            raise InputError(
                f"{row.where}: the column {label!r} should hold answers and holds {json_type_name(other)}."
            )


def _raw_answer(text: object, start: object, where: str) -> RawAnswer:
    if not isinstance(text, str):
        raise InputError(f"{where}: an answer should be text and is {json_type_name(text)}. Correct the answer.")
    if start is None or start == "":
        return RawAnswer(text)
    try:
        return RawAnswer(text, int(str(start)), has_start=True)
    except ValueError:
        raise InputError(f"{where}: {START!r} should be a whole number, found {start!r}. Correct the answer.") from None


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
