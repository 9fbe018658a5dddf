"""Files for text classification, regression and multi-label classification: one or two texts and their labels.

Whether a label is a class or a number is decided by the task. In JSON lines several labels are a list; an empty list
means that a row has none, and a missing one is refused. In a table several labels are one cell, `oil; gas` or `oil|gas`
or `oil,gas`: the first of `;`, `|` and `,` that occurs in any cell separates the labels in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import LABELS, NO_COLUMN_CHOICE, ColumnChoice, choose_columns, find_column
from unmask.finetuning.data.dataset import ExampleSet, TaskReader, Texts, row_by_row
from unmask.finetuning.data.table_file import TaskFile, json_type_name, label_cell, label_text, text_cell

LABEL_SET_COLUMNS = ("labels", "topics", "categories", "classes", "genres", "emotions", *LABELS)
"""Usual names of a column with several labels, the most specific first."""
_SEPARATORS = (";", "|", ",")


@dataclass(frozen=True, slots=True)
class TextExample:
    """One or two texts, and their label as written; empty if unknown."""

    texts: Texts
    truth: str = ""

    def to_json(self) -> dict[str, object]:
        """A single text as a string, two as a list; the label if it is known."""
        return {"text": _text_or_list(self.texts), **({"label": self.truth} if self.truth else {})}


@dataclass(frozen=True, slots=True)
class MultiLabelExample:
    """One or two texts, and their labels as written."""

    texts: Texts
    truth: tuple[str, ...] = ()
    is_known: bool = False
    """Whether the labels are known; distinguishes an empty set of labels from an unlabelled row."""

    def to_json(self) -> dict[str, object]:
        """A single text as a string, two as a list; the labels if they are known."""
        return {"text": _text_or_list(self.texts), **({"labels": list(self.truth)} if self.is_known else {})}


def _text_or_list(texts: Texts) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)


def _text_example(row: RawRow, columns: ColumnChoice, truths: bool) -> TextExample:
    texts = tuple(text_cell(row, name) for name in columns.texts)
    return TextExample(texts, label_cell(row, columns.label) if truths else "")


read_classification = TaskReader(choose_columns, row_by_row(_text_example))
"""Reads texts with one label each."""


def _choose_multilabel(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    label = choice.label or (label_set_column(table) if truths else "")
    return choose_columns(table, ColumnChoice(choice.texts, label), truths)


def label_set_column(table: TaskFile) -> str:
    """The column of the labels: by its name, else the only one whose first cell is a list, else empty."""
    lists = [name for name in table.columns if isinstance(table.rows[0].fields[name], list)]
    return find_column(table.columns, LABEL_SET_COLUMNS) or (lists[0] if len(lists) == 1 else "")


def _multilabel_examples(table: TaskFile, columns: ColumnChoice, truths: bool) -> ExampleSet[MultiLabelExample]:
    cells = [cell for row in table.rows if isinstance(cell := row.fields.get(columns.label), str)]
    separator = next((mark for mark in _SEPARATORS if any(mark in cell for cell in cells)), "")

    def example(row: RawRow, columns: ColumnChoice, truths: bool) -> MultiLabelExample:
        texts = tuple(text_cell(row, name) for name in columns.texts)
        labels = _labels(row, columns.label, separator) if truths else ()
        return MultiLabelExample(texts, labels, is_known=truths)

    return row_by_row(example)(table, columns, truths)


read_multilabel = TaskReader(_choose_multilabel, _multilabel_examples)
"""Reads texts with any number of labels."""


def is_multilabel(first: RawRow, choice: ColumnChoice = NO_COLUMN_CHOICE) -> bool:
    """Whether the label column of the first row, named or usual, holds several labels."""
    if choice.label:
        return isinstance(first.fields.get(choice.label), list)
    cells = {name.lower(): cell for name, cell in first.fields.items()}
    has_words = not cells.keys().isdisjoint(("tokens", "words", "chars"))  # then a list holds a tag for each of them
    found = [cells[name] for name in LABEL_SET_COLUMNS if name in cells]
    joined = any(isinstance(cell, str) and (";" in cell or "|" in cell) for cell in found[:1])
    return not has_words and bool(found) and (joined or all(isinstance(cell, list) for cell in found))


def _labels(row: RawRow, name: str, separator: str) -> tuple[str, ...]:
    """The distinct labels of a row, in the order of the file."""
    cell = row.fields.get(name)
    if cell is None:
        raise InputError(
            f"{row.where}: the labels are missing (column {name!r}). Add them, [] for none, or remove the line."
        )
    if isinstance(cell, str):
        parts = cell.split(separator) if separator else [cell]
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    labels = [label_text(one) for one in cell] if isinstance(cell, list) else [label_text(cell)]
    if not all(labels):
        found = json_type_name(cell[labels.index("")]) if isinstance(cell, list) else json_type_name(cell)
        raise InputError(f"{row.where}: each label in {name!r} should be a word or a number; one is {found}.")
    return tuple(dict.fromkeys(labels))
