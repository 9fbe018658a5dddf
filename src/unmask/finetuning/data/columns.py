"""Column mapping of task files: which columns hold the text, and which one holds the label.

Columns are named by the user or found by their usual names; the caller prints which ones were taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import TableFormat
from unmask.finetuning.data.table_file import TaskFile

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("unit1", "unit2"),
    ("question", "sentence"),
    ("question", "answer"),
    ("query", "title"),
    ("query", "document"),
    ("query", "passage"),
)
"""Usual names of two texts, the most specific first. Pairs are tried before single texts."""
TEXTS = ("text", "sentence", "question", "review", "content", "comment", "query", "title", "document", "utterance")
LABELS = ("label", "labels", "score", "class", "category", "sentiment", "rating", "stars", "polarity", "similarity")


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The text columns and the label column: as named by the user (empty where not), later as read."""

    texts: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if len(set(self.texts)) < len(self.texts):
            raise InputError(f"--text-columns names the same column twice: {', '.join(self.texts)}.")
        if self.label in self.texts:
            raise InputError(
                f"--label-column {self.label} is also one of --text-columns. A network must not read its label."
            )
        if self.is_numbered and self.label and not self.label.isdecimal():
            raise InputError(
                f"--text-columns gives column numbers, so --label-column needs one too; found {self.label!r}."
            )

    @staticmethod
    def parse(texts: str | Sequence[str], label: str) -> ColumnChoice:
        """From user input: text columns as one comma-separated text or as a list."""
        names = texts.split(",") if isinstance(texts, str) else texts
        return ColumnChoice(tuple(name.strip() for name in names if name.strip()), label.strip())

    def __str__(self) -> str:
        return f"text from {' and '.join(map(repr, self.texts))}, label from {self.label!r}"

    @property
    def is_numbered(self) -> bool:
        """Whether columns are given by number, because the file has no header."""
        return bool(self.texts) and all(name.isdecimal() for name in self.texts)


NO_COLUMN_CHOICE = ColumnChoice()


def find_column(columns: Iterable[str], names: Iterable[str], exclude: Sequence[str] = ()) -> str:
    """The first of some usual names that is a column, whatever its case; empty if none is."""
    by_lower = {column.lower(): column for column in columns if column not in exclude}
    return next((by_lower[name] for name in names if name in by_lower), "")


def usual_column(table: TaskFile, names: Iterable[str], what: str, advice: str, exclude: Sequence[str] = ()) -> str:
    """The column with a usual name; refuses a table without one, with the advice."""
    found = find_column(table.columns, names, exclude)
    if not found:
        raise InputError(
            f"{table.name}: no column has a usual name for {what}; {describe_columns(table.columns)}. {advice}"
        )
    return found


def require_columns(table: TaskFile, names: Iterable[str]) -> tuple[str, ...]:
    """The names themselves, if they are all columns of the table."""
    names = tuple(names)
    for name in names:
        if name not in table.columns:
            raise InputError(f"{table.first_line}: there is no column {name!r}; {describe_columns(table.columns)}.")
    return names


def describe_columns(columns: Sequence[str]) -> str:
    """The columns of a table for an error message, shortened."""
    some = ", ".join(repr(name if len(name) <= 30 else name[:29] + "…") for name in columns[:12])
    return f"it has {some}{' and more' if len(columns) > 12 else ''}"


def choose_columns(table: TaskFile, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True) -> ColumnChoice:
    """One or two text columns and a label column: those of the choice, the rest by usual names."""
    if not truths:
        return choice
    if len(choice.texts) > 2:
        raise InputError(f"--text-columns names one text or two different ones, found {', '.join(choice.texts)}.")
    if choice.is_numbered and table.format is not TableFormat.JSON_LINES:
        return _by_number(table, choice)
    texts = require_columns(table, choice.texts) or _guess_texts(table, choice.label)
    if choice.label:
        return ColumnChoice(texts, *require_columns(table, (choice.label,)))
    return ColumnChoice(texts, usual_column(table, LABELS, "a label", _advice(table), texts))


def _by_number(table: TaskFile, choice: ColumnChoice) -> ColumnChoice:
    """Numbered columns. Refuses a header in the first row, which would become an example."""
    first = [str(cell).strip().lower() for cell in table.rows[0].fields.values()]
    if set(first) & set(LABELS) and set(first) & {*TEXTS, *(name for pair in PAIRS for name in pair)}:
        raise InputError(
            f"{table.name}: the first line holds names ({', '.join(first)}), so columns cannot be given by number. "
            "Name them: --text-columns and --label-column."
        )
    if not choice.label:
        raise InputError(
            f"{table.name}: --text-columns gives column numbers, so --label-column needs one too, such as "
            "--label-column 2."
        )
    return ColumnChoice(require_columns(table, choice.texts), *require_columns(table, (choice.label,)))


def _guess_texts(table: TaskFile, label: str) -> tuple[str, ...]:
    by_lower = {name.lower(): name for name in table.columns if name != label}
    for pair in PAIRS:
        if all(name in by_lower for name in pair):
            return tuple(by_lower[name] for name in pair)
    return (usual_column(table, TEXTS, "a text", _advice(table), (label,)),)


def _advice(table: TaskFile) -> str:
    if len(table.columns) == 1 and table.format is not TableFormat.JSON_LINES:
        other = next((sign for sign in ";\t|," if sign in table.columns[0]), "")
        if other:
            sign = "tab" if other == "\t" else f"'{other}'"
            return f"Its cells seem to be separated by {sign}; a .csv file has commas, a .tsv file tabs."
    named = "Name them: --text-columns TEXT (or TEXT1,TEXT2 for a pair) --label-column LABEL."
    if table.format is TableFormat.JSON_LINES:
        return named
    return f"{named} If the file has no header, give column numbers: --text-columns 1 --label-column 2."
