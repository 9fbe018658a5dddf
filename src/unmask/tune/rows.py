"""Questions about whole rows: one text or two, and a label as it is written in the file.

What arrives: the path of a table. What leaves: a `Sheet` of `RowQuestion`s, and the fields that were read.
What never happens here: the meaning of a label. Whether it is a class or a number is for an output to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.text.rows import Row
from unmask.tune.fields import NO_CHOICE, Choice, find_fields
from unmask.tune.sheet import Sheet, Texts, text_of, truth_of
from unmask.tune.task_file import read_task_file


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """One text or two, and what is true about them, as written; nothing where that is unknown."""

    texts: Texts
    truth: str = ""

    def line(self) -> dict[str, object]:
        """One text as text, two as a list; the label if it is known."""
        text = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return {"text": text, "label": self.truth} if self.truth else {"text": text}


def read(path: Path, choice: Choice = NO_CHOICE, truths: bool = True) -> tuple[Sheet[RowQuestion], Choice]:
    """The rows of a task file, from the fields that were chosen or have usual names; and which fields these are."""
    table = read_task_file(path, choice.numbered)
    made = find_fields(table, choice) if truths else choice
    return Sheet(table.name, tuple(_question(row, made, truths) for row in table.rows), table.where), made


def _question(row: Row, choice: Choice, truths: bool) -> RowQuestion:
    texts = tuple(text_of(row, name) for name in choice.texts)
    return RowQuestion(texts, truth_of(row, choice.label) if truths else "")
