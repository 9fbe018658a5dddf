"""Questions about whole rows that have several labels, one or none.

What arrives: the path of a table. What leaves: a `Sheet` of `LabelQuestion`s, and the fields that were read.
What never happens here: a missing set of labels that passes for an empty one. An empty list, or an empty cell of a
table, says that a row has no label; a field that is not there says nothing and is refused.

In JSON lines the labels are a list. In a table they are one cell, `oil; gas` or `oil|gas` or `oil,gas`: the first of
`;`, `|` and `,` that occurs in any cell of the file stands between labels in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import LABELS, NO_COLUMN_CHOICE, ColumnChoice, choose_columns
from unmask.finetuning.data.dataset import ExampleSet, Texts, json_type_name, label_of, text_of
from unmask.finetuning.data.table_file import TaskFile, read_task_file

LABEL_SET_COLUMNS = ("labels", "topics", "categories", "classes", "genres", "emotions", *LABELS)
"""Usual names of a field with several labels, the most telling first."""
_SEPARATORS = (";", "|", ",")


@dataclass(frozen=True, slots=True)
class MultiLabelExample:
    """One text or two, and their labels as written."""

    texts: Texts
    truth: tuple[str, ...] = ()
    is_known: bool = False
    """Whether the labels are known; else there are none because nobody told them."""

    def to_json(self) -> dict[str, object]:
        """One text as text, two as a list."""
        text = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return {"text": text, "labels": list(self.truth)} if self.is_known else {"text": text}


def read_multilabel(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[MultiLabelExample], ColumnChoice]:
    """The rows of a task file with their labels; and which fields these are."""
    table = read_task_file(path, choice.is_numbered)
    made = choose_columns(table, ColumnChoice(choice.texts, choice.label or label_field(table))) if truths else choice
    separator = _separator(table, made.label)
    questions = tuple(_example(row, made, separator, truths) for row in table.rows)
    return ExampleSet(table.name, questions, table.source_lines), made


def is_multilabel(first: RawRow, choice: ColumnChoice = NO_COLUMN_CHOICE) -> bool:
    """Whether the first row of a file has a list where labels were said to stand, or where they usually stand."""
    if choice.label:
        return isinstance(first.fields.get(choice.label), list)
    names = {name.lower(): cell for name, cell in first.fields.items()}
    words = not names.keys().isdisjoint(("tokens", "words", "chars"))  # then a list has a tag for each of them
    found = [names[name] for name in LABEL_SET_COLUMNS if name in names]
    joined = any(isinstance(cell, str) and (";" in cell or "|" in cell) for cell in found[:1])
    return not words and bool(found) and (joined or all(isinstance(cell, list) for cell in found))


def label_field(table: TaskFile) -> str:
    """The field that holds labels, by its name; else the only one whose first cell is a list; else nothing."""
    have = {name.lower(): name for name in table.columns}
    named = next((have[name] for name in LABEL_SET_COLUMNS if name in have), "")
    lists = [name for name in table.columns if isinstance(table.rows[0].fields[name], list)]
    return named or (lists[0] if len(lists) == 1 else "")


def _separator(table: TaskFile, label: str) -> str:
    """What stands between the labels of a cell; nothing where a cell is one label."""
    cells = [cell for row in table.rows if isinstance(cell := row.fields.get(label), str)]
    return next((mark for mark in _SEPARATORS if any(mark in cell for cell in cells)), "")


def _example(row: RawRow, choice: ColumnChoice, separator: str, truths: bool) -> MultiLabelExample:
    texts = tuple(text_of(row, name) for name in choice.texts)
    return MultiLabelExample(texts, _labels(row, choice.label, separator), True) if truths else MultiLabelExample(texts)


def _labels(row: RawRow, name: str, separator: str) -> tuple[str, ...]:
    """The labels of a row, each once, in the order in which they are written."""
    cell = row.fields.get(name)
    if cell is None:
        raise InputError(
            f"{row.where}: the labels are missing (field {name!r}). Add them, [] for none, or remove the line."
        )
    if isinstance(cell, str):
        parts = cell.split(separator) if separator else [cell]
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    written = [label_of(one) for one in cell] if isinstance(cell, list) else [label_of(cell)]
    if not all(written):
        found = json_type_name(cell[written.index("")]) if isinstance(cell, list) else json_type_name(cell)
        raise InputError(f"{row.where}: each label in {name!r} should be a word or a number; one is {found}.")
    return tuple(dict.fromkeys(written))
