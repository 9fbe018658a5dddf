"""Sources and the texts to be written for them, as a task file tells them.

What arrives: the path of a table. What leaves: a `Sheet` of `TextQuestion`s, and the fields that were read.
What never happens here: a row without a text to be written, unless none is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, text_of
from unmask.finetuning.data.table_file import TaskFile, read_task_file

PAIRS = (
    ("source", "target"),
    ("src", "tgt"),
    ("input", "output"),
    ("text", "summary"),
    ("document", "summary"),
    ("article", "summary"),
    ("article", "highlights"),
    ("text", "headline"),
    ("text", "title"),
    ("content", "title"),
    ("abstract", "title"),
    ("en", "zh"),
    ("en", "de"),
    ("en", "fr"),
    ("zh", "en"),
    ("de", "en"),
    ("fr", "en"),
    ("question", "answer"),
)
"""Names of a source and of the text to be written for it, the most telling first."""


@dataclass(frozen=True, slots=True)
class Seq2SeqExample:
    """A source, and the text to be written for it; nothing where that is unknown."""

    source: str
    target: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is read."""
        return (self.source,)

    def to_json(self) -> dict[str, object]:
        """Both as written; the text only if it is known."""
        return {"source": self.source, "target": self.target} if self.target else {"source": self.source}


def read_seq2seq(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[Seq2SeqExample], ColumnChoice]:
    """The rows of a task file, from the fields that were chosen or have usual names; and which fields these are."""
    table = read_task_file(path, choice.is_numbered)
    made = choose_source_and_target(table, choice) if truths else choice
    return ExampleSet(table.name, tuple(_example(row, made, truths) for row in table.rows), table.source_lines), made


def is_seq2seq(first: RawRow) -> bool:
    """Whether the first row of a file names a source and its target, and nothing that looks like a label."""
    names = {name.lower() for name in first.fields}
    return any(names >= set(pair) for pair in PAIRS[:3]) and "label" not in names


def choose_source_and_target(table: TaskFile, choice: ColumnChoice = NO_COLUMN_CHOICE) -> ColumnChoice:
    """The field of the source and that of the text: what was chosen, and for the rest the usual names."""
    if len(choice.texts) > 1:
        raise InputError(f"--text-columns names one source, found {', '.join(choice.texts)}; --label-column names its text.")
    source, target = "".join(choice.texts), choice.label
    for name in filter(None, (source, target)):
        if name not in table.columns:
            raise InputError(f"{table.rows[0].where}: there is no field {name!r}; it has {_some(table)}.")
    have = {name.lower(): name for name in table.columns}
    for one, other in ((source.lower(), target.lower()), *PAIRS):
        fits = source.lower() in ("", one) and target.lower() in ("", other)
        if fits and one in have and other in have:
            return ColumnChoice((have[one],), have[other])
    raise InputError(
        f"{table.name}: no two fields have usual names for a source and the text to be written for it; it has "
        f"{_some(table)}. Name them: --text-columns SOURCE --label-column TEXT."
    )


def _example(row: RawRow, choice: ColumnChoice, truths: bool) -> Seq2SeqExample:
    source = check_surrogates(text_of(row, choice.texts[0]), row.where)
    target = check_surrogates(text_of(row, choice.label), row.where) if truths else ""
    if truths and not target.strip():
        raise InputError(
            f"{row.where}: the text to be written ({choice.label!r}) is empty. Add it, or remove the line."
        )
    return Seq2SeqExample(source, target)


def _some(table: TaskFile) -> str:
    return ", ".join(map(repr, table.columns[:12])) + (" and more" if len(table.columns) > 12 else "")
