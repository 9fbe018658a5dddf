"""Questions about whole rows: one text or two, and a label as it is written in the file.

What arrives: the path of a table. What leaves: a `Sheet` of `RowQuestion`s, and the fields that were read.
What never happens here: the meaning of a label. Whether it is a class or a number is for an output to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice, choose_columns
from unmask.finetuning.data.dataset import ExampleSet, Texts, text_of, truth_of
from unmask.finetuning.data.table_file import read_task_file


@dataclass(frozen=True, slots=True)
class TextExample:
    """One text or two, and what is true about them, as written; nothing where that is unknown."""

    texts: Texts
    truth: str = ""

    def to_json(self) -> dict[str, object]:
        """One text as text, two as a list; the label if it is known."""
        text = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return {"text": text, "label": self.truth} if self.truth else {"text": text}


def read_classification(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[TextExample], ColumnChoice]:
    """The rows of a task file, from the fields that were chosen or have usual names; and which fields these are."""
    table = read_task_file(path, choice.is_numbered)
    made = choose_columns(table, choice) if truths else choice
    return ExampleSet(table.name, tuple(_example(row, made, truths) for row in table.rows), table.source_lines), made


def _example(row: RawRow, choice: ColumnChoice, truths: bool) -> TextExample:
    texts = tuple(text_of(row, name) for name in choice.texts)
    return TextExample(texts, truth_of(row, choice.label) if truths else "")
