"""Which cells of a task file hold the text, and which holds the label.

What arrives: a table, and what the user said about it, if anything. What leaves: a `Choice` that names them all.
What never happens here: a guess that is kept quiet. Whoever guesses prints what was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""Names that belong together, the most telling first. A pair is looked for before a single text."""
TEXTS = ("text", "sentence", "question", "review", "content", "comment", "query", "title", "document", "utterance")
LABELS = ("label", "labels", "score", "class", "category", "sentiment", "rating", "stars", "polarity", "similarity")


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Which fields are read: those that the user named, and nothing where nothing was said; later, those that were."""

    texts: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if len(set(self.texts)) < len(self.texts):
            raise InputError(f"--text-columns names the same field twice: {', '.join(self.texts)}.")
        if self.label in self.texts:
            raise InputError(
                f"--label-column {self.label} is also named by --text-columns. A network that reads its label is blind."
            )
        if self.is_numbered and self.label and not self.label.isdecimal():
            raise InputError(f"--text-columns gives column numbers, so --label-column needs one too; found {self.label!r}.")

    @staticmethod
    def parse(texts: str | Sequence[str], label: str) -> ColumnChoice:
        """What a user wrote: the fields of the text with commas between them, or as a list."""
        names = texts.split(",") if isinstance(texts, str) else texts
        return ColumnChoice(tuple(name.strip() for name in names if name.strip()), label.strip())

    def __str__(self) -> str:
        return f"text from {' and '.join(map(repr, self.texts))}, label from {self.label!r}"

    @property
    def is_numbered(self) -> bool:
        """Whether columns are counted, because the file has no names for them."""
        return bool(self.texts) and all(name.isdecimal() for name in self.texts)


NO_COLUMN_CHOICE = ColumnChoice()


def choose_columns(table: TaskFile, choice: ColumnChoice = NO_COLUMN_CHOICE) -> ColumnChoice:
    """One text or two and a label: what was chosen, and for the rest the usual names."""
    if len(choice.texts) > 2:
        raise InputError(f"--text-columns names one text or two different ones, found {', '.join(choice.texts)}.")
    if choice.is_numbered and table.format is not TableFormat.JSON_LINES:
        return _by_number(table, choice)
    texts = _check_known(table, choice.texts) if choice.texts else _guess_texts(table, choice.label)
    label = _check_known(table, (choice.label,))[0] if choice.label else _guess_label(table, texts)
    return ColumnChoice(texts, label)


def _by_number(table: TaskFile, choice: ColumnChoice) -> ColumnChoice:
    """Numbered columns. A first row of usual names was meant as names, and would become a class of its own."""
    first = [str(cell).strip().lower() for cell in table.rows[0].fields.values()]
    if set(first) & set(LABELS) and set(first) & {*TEXTS, *(name for pair in PAIRS for name in pair)}:
        raise InputError(
            f"{table.name}: the first line holds names ({', '.join(first)}), so columns cannot be given by number. "
            "Name them: --text-columns and --label-column."
        )
    if not choice.label:
        raise InputError(f"{table.name}: --text-columns gives column numbers, so --label-column needs one too, such as --label-column 2.")
    return ColumnChoice(_check_known(table, choice.texts), _check_known(table, (choice.label,))[0])


def _check_known(table: TaskFile, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in table.columns:
            raise InputError(f"{table.rows[0].where}: there is no field {name!r}; {_there(table)}.")
    return tuple(names)


def _guess_texts(table: TaskFile, label: str) -> tuple[str, ...]:
    have = {name.lower(): name for name in table.columns if name != label}
    for names in (*PAIRS, *((name,) for name in TEXTS)):
        if all(name in have for name in names):
            return tuple(have[name] for name in names)
    raise InputError(f"{table.name}: no field has a usual name for a text; {_there(table)}. {_advice(table)}")


def _guess_label(table: TaskFile, texts: tuple[str, ...]) -> str:
    have = {name.lower(): name for name in table.columns if name not in texts}
    found = next((have[name] for name in LABELS if name in have), "")
    if not found:
        raise InputError(f"{table.name}: no field has a usual name for a label; {_there(table)}. {_advice(table)}")
    return found


def _there(table: TaskFile) -> str:
    some = ", ".join(repr(name if len(name) <= 30 else name[:29] + "…") for name in table.columns[:12])
    return f"it has {some}{' and more' if len(table.columns) > 12 else ''}"


def _advice(table: TaskFile) -> str:
    if len(table.columns) == 1 and table.format is not TableFormat.JSON_LINES:
        other = next((sign for sign in ";\t|," if sign in table.columns[0]), "")
        if other:
            sign = "tab" if other == "\t" else f"'{other}'"
            return f"Its cells seem to be parted by {sign}; a .csv file has commas, a .tsv file tabs."
    named = "Name them: --text-columns TEXT (or TEXT1,TEXT2 for a pair) --label-column LABEL."
    if table.format is TableFormat.JSON_LINES:
        return named
    return f"{named} If the first line holds no names but a first row, give column numbers: --text-columns 1 --label-column 2."
