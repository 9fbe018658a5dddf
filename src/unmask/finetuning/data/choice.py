"""Multiple-choice files: questions with given choices, one of them right.

Choices are one list (`choices`, `options`, `endings` ...) or columns of their own (`A`, `B`, `C`; `ending0`,
`ending1`). A JSON line may hold one context with many questions, as in C3: `{"context": ..., "qas": [{"question": ...,
"choices": [...], "answer": ...}]}`. The right choice is given by its text, its letter, or its number from 0, whichever
fits most lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice, find_column
from unmask.finetuning.data.dataset import ExampleSet, TaskReader, Texts, load_table
from unmask.finetuning.data.table_file import TaskFile, json_type_name, label_text, text_cell, unfold_row

CONTEXTS = ("context", "article", "passage", "document", "content", "story", "text", "sent1", "startphrase", "premise")
QUESTIONS = ("question", "query", "sent2")
LISTS = ("choices", "options", "endings", "candidates", "answers")
ANSWERS = ("answer", "label", "answerkey", "answer_index", "gold", "correct")
NESTED = ("qas", "questions")
_COLUMN = re.compile(r"(ending|choice|option|candidate|answer|sol)[ _-]?(\d+|[a-j])|[a-j]", re.IGNORECASE)
"""What columns with one choice each are called."""


class AnswerFormat(StrEnum):
    """How a file marks the right choice."""

    TEXT = "its text"
    LETTER = "a letter, A for the first"
    NUMBER = "a number, 0 for the first"


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A context, a question, or both in this order; and the choices."""

    context: tuple[str, ...]
    choices: tuple[str, ...]
    truth: str = ""
    """The text of the right choice; empty if unknown."""

    @property
    def texts(self) -> Texts:
        """The context; without one, the question with its choices."""
        return self.context[:1] if len(self.context) > 1 else (*self.context, *self.choices)

    def to_json(self) -> dict[str, object]:
        """The question, its choices, and the right one if it is known."""
        answer = {"answer": self.truth} if self.truth else {}
        return {"given": list(self.context), "choices": list(self.choices), **answer}


def is_multiple_choice(first: RawRow, choice: ColumnChoice = NO_COLUMN_CHOICE) -> bool:
    """Whether the first row of a file has choices and an answer, in the named columns or anywhere."""
    row = next(unfold_row(first, NESTED), first)
    considered = {*choice.texts, choice.label, *ANSWERS} if choice.texts else {*row.fields}
    names = {name.lower(): cell for name, cell in row.fields.items() if name in considered}
    lists = (cell for name, cell in names.items() if name in LISTS and isinstance(cell, list))
    has_list = any(len(cell) > 1 and all(isinstance(one, str) for one in cell) for cell in lists)
    columns = [name for name in names if _COLUMN.fullmatch(name)]
    has_question = bool(choice.texts) or not names.keys().isdisjoint((*CONTEXTS, *QUESTIONS))
    has_answer = choice.label in row.fields or not names.keys().isdisjoint(ANSWERS)
    return has_question and has_answer and (has_list or len(columns) > 1)


def _load(path: Path, columns: ColumnChoice) -> TaskFile:
    return load_table(path, columns).unfold(NESTED)


def _choose_columns(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """Columns of context, question, choices and answer: as named, or by usual names."""
    usual = (find_column(table.columns, names) for names in (CONTEXTS, QUESTIONS))
    texts = choice.texts or (*filter(None, usual), *_choice_columns(table, table.columns))
    label = choice.label or find_column(table.columns, ANSWERS, texts)
    given, columns = _parts(table, texts)
    has_choices = len(columns) > 1 or any(isinstance(table.rows[0].fields.get(name), list) for name in columns)
    has_all = {*texts, *([label] if truths else [])} <= {*table.columns}
    if not (has_choices and 1 <= len(given) <= 2 and has_all):
        raise InputError(
            f"{table.first_line}: multiple choice needs a context or a question (or both), choices and the answer; "
            f"it has {', '.join(map(repr, table.columns[:12]))}. Name them: --text-columns CONTEXT,QUESTION,CHOICES "
            "--label-column ANSWER; choices are a list, or a column for each."
        )
    return ColumnChoice(texts, label)


def _examples(table: TaskFile, chosen: ColumnChoice, truths: bool) -> ExampleSet[ChoiceExample]:
    given, columns = _parts(table, chosen.texts)
    examples = tuple(_example(row, given, columns) for row in table.rows)
    if truths:
        cells = [row.fields.get(chosen.label) for row in table.rows]
        examples = tuple(_with_gold_choices(examples, cells, table.source_lines, chosen.label))
    return ExampleSet(table.name, examples, table.source_lines)


read_choice = TaskReader(_choose_columns, _examples, _load)
"""Reads multiple-choice questions."""


def _parts(table: TaskFile, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of the question and columns of the choices; without usual names, the first column is the question."""
    columns = _choice_columns(table, texts) or tuple(texts[1:])
    return tuple(name for name in texts if name not in columns), columns


def _choice_columns(table: TaskFile, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that hold choices: one with a list, or several with one choice each."""
    lists = [name for name in names if isinstance(table.rows[0].fields.get(name), list)]
    usual = [name for name in lists if name.lower() in LISTS]
    if lists:
        return tuple((usual or lists)[:1])
    columns = tuple(name for name in names if _COLUMN.fullmatch(name))
    return columns if len(columns) > 1 else ()


def _example(row: RawRow, given: Sequence[str], columns: Sequence[str]) -> ChoiceExample:
    choices = _listed(row, columns[0]) if len(columns) == 1 else tuple(text_cell(row, name) for name in columns)
    if len(choices) < 2:
        raise InputError(f"{row.where}: a question needs two choices or more, found {len(choices)}. Correct the line.")
    if not all(one.strip() for one in choices):
        raise InputError(f"{row.where}: one of the {len(choices)} choices is empty. Correct the line, or remove it.")
    return ChoiceExample(tuple(text_cell(row, name) for name in given), choices)


def _listed(row: RawRow, name: str) -> tuple[str, ...]:
    cell = row.fields.get(name)
    if not isinstance(cell, list):
        raise InputError(f"{row.where}: the choices {name!r} should be a list and are {json_type_name(cell)}.")
    return tuple(one if isinstance(one, str) else label_text(one) for one in cell)


def _with_gold_choices(
    examples: Sequence[ChoiceExample], cells: Sequence[object], where: Sequence[str], label: str
) -> Iterator[ChoiceExample]:
    """Every question with its right choice, in the answer format that fits most questions; refuses the others."""
    pairs = list(zip(examples, cells, strict=True))
    form = max(AnswerFormat, key=lambda form: sum(bool(_gold_choice(cell, one.choices, form)) for one, cell in pairs))
    for (example, cell), place in zip(pairs, where, strict=True):
        truth = _gold_choice(cell, example.choices, form)
        if not label_text(cell):
            raise InputError(f"{place}: the answer is missing (column {label!r}). Add it, or remove the line.")
        if not truth:
            raise InputError(
                f"{place}: the answer {label_text(cell)!r} is none of the {len(example.choices)} choices; this file "
                f"gives the right one as {form}. Correct the line, or remove it."
            )
        yield replace(example, truth=truth)


def _gold_choice(cell: object, choices: Sequence[str], form: AnswerFormat) -> str:
    """The choice that a cell refers to in this format; empty if none."""
    word = label_text(cell)
    match form:
        case AnswerFormat.TEXT:
            return next((one for one in choices if isinstance(cell, str) and one.strip() == word), "")
        case AnswerFormat.LETTER:
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(choices)]
            return choices[letters.index(word.upper())] if len(word) == 1 and word.upper() in letters else ""
        case AnswerFormat.NUMBER:
            return choices[int(word)] if word.isdecimal() and int(word) < len(choices) else ""
