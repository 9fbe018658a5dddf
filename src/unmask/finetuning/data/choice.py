"""Questions with given answers, one of them right: multiple choice from plain files.

What arrives: the path of a table. What leaves: a `Sheet` of `ChoiceQuestion`s, and the fields that were read.
What never happens here: an answer that is none of the choices, or a question with nothing to choose.

Choices are a list (`choices`, `options`, `endings` ...), or stand in columns of their own (`A`, `B`, `C`; `ending0`,
`ending1`). A line of JSON may hold one context and many questions about it, as C3 does: `{"context": ..., "qas":
[{"question": ..., "choices": [...], "answer": ...}]}`. The right one is told by its text, its letter, or its number
from 0: whichever fits all lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, Texts, json_type_name, label_of, text_of
from unmask.finetuning.data.table_file import TaskFile, read_task_file

CONTEXTS = ("context", "article", "passage", "document", "content", "story", "text", "sent1", "startphrase", "premise")
QUESTIONS = ("question", "query", "sent2")
LISTS = ("choices", "options", "endings", "candidates", "answers")
ANSWERS = ("answer", "label", "answerkey", "answer_index", "gold", "correct")
NESTED = ("qas", "questions")
_COLUMN = re.compile(r"(ending|choice|option|candidate|answer|sol)[ _-]?(\d+|[a-j])|[a-j]", re.IGNORECASE)
"""What columns with one choice each are called."""


class AnswerFormat(StrEnum):
    """How a file tells which choice is right."""

    TEXT = "its text"
    LETTER = "a letter, A for the first"
    NUMBER = "a number, 0 for the first"


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A context, a question, or both in this order; and what can be chosen."""

    context: tuple[str, ...]
    choices: tuple[str, ...]
    truth: str = ""
    """The text of the right choice; nothing where that is unknown."""

    @property
    def texts(self) -> Texts:
        """Questions about the same context stay together; without one, only the same questions do."""
        return self.context[:1] if len(self.context) > 1 else (*self.context, *self.choices)

    def to_json(self) -> dict[str, object]:
        """The question, its choices, and the right one if it is known."""
        asked: dict[str, object] = {"given": list(self.context), "choices": list(self.choices)}
        return {**asked, "answer": self.truth} if self.truth else asked


def read_choice(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[ChoiceExample], ColumnChoice]:
    """The questions of a task file; and which fields hold them: those given, then those with choices."""
    table = unfold_rows(read_task_file(path, choice.is_numbered), NESTED)
    made = _choose_columns(table, choice, truths)
    given, columns = _parts(table, made.texts)
    questions = tuple(_example(row, given, columns) for row in table.rows)
    if truths:
        cells = [row.fields.get(made.label) for row in table.rows]
        questions = tuple(_with_gold_choices(questions, cells, table.source_lines, made.label))
    return ExampleSet(table.name, questions, table.source_lines), made


def is_multiple_choice(first: RawRow, choice: ColumnChoice = NO_COLUMN_CHOICE) -> bool:
    """Whether the first row of a file has choices and an answer; if fields were chosen, whether they do."""
    row = next(unfold(first, NESTED), first)
    asked = {*choice.texts, choice.label, *ANSWERS} if choice.texts else {*row.fields}
    names = {name.lower(): cell for name, cell in row.fields.items() if name in asked}
    lists = (cell for name, cell in names.items() if name in LISTS and isinstance(cell, list))
    listed = any(len(cell) > 1 and all(isinstance(one, str) for one in cell) for cell in lists)
    columns = [name for name in names if _COLUMN.fullmatch(name)]
    given = bool(choice.texts) or not names.keys().isdisjoint((*CONTEXTS, *QUESTIONS))
    told = choice.label in row.fields or not names.keys().isdisjoint(ANSWERS)
    return given and told and (listed or len(columns) > 1)


def unfold_rows(table: TaskFile, nested: Sequence[str]) -> TaskFile:
    """One row for each object of a nested list, beside the fields of the row that held it."""
    rows = tuple(one for row in table.rows for one in unfold(row, nested))
    if not rows:
        raise InputError(f"{table.name} holds no rows: the lists in its lines are all empty.")
    return replace(table, rows=rows, columns=tuple(rows[0].fields))


def unfold(row: RawRow, nested: Sequence[str]) -> Iterator[RawRow]:
    """The objects of a nested list as rows of their own; a row without such a list is itself."""
    name = next((one for one in nested if _objects(row.fields.get(one))), "")
    inside = row.fields.get(name)
    if not isinstance(inside, list):
        yield row
        return
    outside = {other: cell for other, cell in row.fields.items() if other != name}
    for number, fields in enumerate(inside, start=1):
        yield RawRow(f"{row.where} ({name} {number})", {**outside, **fields})


def _objects(cell: object) -> bool:
    return isinstance(cell, list) and all(isinstance(one, dict) for one in cell)


def _choose_columns(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """All fields: those that were named, or those with usual names."""
    have = {name.lower(): name for name in table.columns}
    usual = (next((have[name] for name in names if name in have), "") for names in (CONTEXTS, QUESTIONS))
    texts = choice.texts or (*filter(None, usual), *_choice_columns(table, table.columns))
    label = choice.label or next((have[name] for name in ANSWERS if name in have and have[name] not in texts), "")
    given, columns = _parts(table, texts)
    some = len(columns) > 1 or any(isinstance(table.rows[0].fields.get(name), list) for name in columns)
    if not (some and 1 <= len(given) <= 2 and {*texts, *([label] if truths else [])} <= {*table.columns}):
        raise InputError(
            f"{table.rows[0].where}: multiple choice needs a context or a question (or both), choices and the answer; "
            f"it has {', '.join(map(repr, table.columns[:12]))}. Name them: --text-columns CONTEXT,QUESTION,CHOICES --label-column "
            "ANSWER; choices are a list, or a field for each."
        )
    return ColumnChoice(texts, label)


def _parts(table: TaskFile, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is given, and what can be chosen. Where no name tells, the first field is given and the rest are choices."""
    columns = _choice_columns(table, texts) or tuple(texts[1:])
    return tuple(name for name in texts if name not in columns), columns


def _choice_columns(table: TaskFile, names: Sequence[str]) -> tuple[str, ...]:
    """The fields that hold choices: one with a list, or several with one choice each."""
    lists = [name for name in names if isinstance(table.rows[0].fields.get(name), list)]
    usual = [name for name in lists if name.lower() in LISTS]
    if lists:
        return tuple((usual or lists)[:1])
    columns = tuple(name for name in names if _COLUMN.fullmatch(name))
    return columns if len(columns) > 1 else ()


def _example(row: RawRow, given: Sequence[str], columns: Sequence[str]) -> ChoiceExample:
    choices = _listed(row, columns[0]) if len(columns) == 1 else tuple(text_of(row, name) for name in columns)
    if len(choices) < 2:
        raise InputError(f"{row.where}: a question needs two choices or more, found {len(choices)}. Correct the line.")
    if not all(one.strip() for one in choices):
        raise InputError(f"{row.where}: one of the {len(choices)} choices is no text. Correct the line, or remove it.")
    return ChoiceExample(tuple(text_of(row, name) for name in given), choices)


def _listed(row: RawRow, name: str) -> tuple[str, ...]:
    cell = row.fields.get(name)
    if not isinstance(cell, list):
        raise InputError(f"{row.where}: the choices {name!r} should be a list and are {json_type_name(cell)}.")
    return tuple(one if isinstance(one, str) else label_of(one) for one in cell)


def _with_gold_choices(
    questions: Sequence[ChoiceExample], cells: Sequence[object], where: Sequence[str], label: str
) -> Iterator[ChoiceExample]:
    """Every question with its right choice, told in the way that fits most; one that it does not fit is refused."""
    pairs = list(zip(questions, cells, strict=True))
    told = max(AnswerFormat, key=lambda way: sum(bool(_gold_choice(cell, one.choices, way)) for one, cell in pairs))
    for (question, cell), place in zip(pairs, where, strict=True):
        truth = _gold_choice(cell, question.choices, told)
        if not label_of(cell):
            raise InputError(f"{place}: the answer is missing (field {label!r}). Add it, or remove the line.")
        if not truth:
            raise InputError(
                f"{place}: the answer {label_of(cell)!r} is none of the {len(question.choices)} choices; this file "
                f"tells the right one by {told}. Correct the line, or remove it."
            )
        yield replace(question, truth=truth)


def _gold_choice(cell: object, choices: Sequence[str], told: AnswerFormat) -> str:
    """The choice that a cell means if it is read in this way; nothing if it means none."""
    word = label_of(cell)
    match told:
        case AnswerFormat.TEXT:
            return next((one for one in choices if isinstance(cell, str) and one.strip() == word), "")
        case AnswerFormat.LETTER:
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(choices)]
            return choices[letters.index(word.upper())] if len(word) == 1 and word.upper() in letters else ""
        case AnswerFormat.NUMBER:
            return choices[int(word)] if word.isdecimal() and int(word) < len(choices) else ""
