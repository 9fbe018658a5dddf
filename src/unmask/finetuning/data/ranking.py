"""Queries with candidates, some of them relevant: ranking from plain files.

What arrives: the path of a table. What leaves: a `Sheet` of `RankQuestion`s, and the fields that were read.
What never happens here: the candidates of one query torn apart. Rows with the *same query* are one group, wherever they
stand in the file, and the group stands where its first row stood; a line that holds all candidates is a group alone.

A file has a row for each candidate (query, candidate, label), or in JSON lines one for each query: `{"query": ...,
"candidates": [{"text": ..., "label": 1}, ...]}`. A label is 0 for a candidate of no use, and more for a relevant one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.choice import unfold, unfold_rows
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice, choose_columns
from unmask.finetuning.data.dataset import ExampleSet, Texts, text_of, truth_of
from unmask.finetuning.data.table_file import TaskFile, read_task_file

NESTED = ("candidates", "documents", "passages", "answers")
QUERIES = ("query", "question", "text")
CANDIDATES = ("text", "candidate", "passage", "document", "answer", "title", "sentence")
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A query and its candidates."""

    query: str
    candidates: tuple[str, ...]
    truth: tuple[float, ...] = ()
    """How relevant each candidate is; nothing where that is unknown."""

    @property
    def texts(self) -> Texts:
        """The candidates of a query stay together."""
        return (self.query,)

    def to_json(self) -> dict[str, object]:
        """The query, its candidates, and how relevant each is if that is known."""
        asked: dict[str, object] = {"query": self.query, "candidates": list(self.candidates)}
        return {**asked, "labels": list(self.truth)} if self.truth else asked


def read_ranking(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[RankingExample], ColumnChoice]:
    """The queries of a task file with their candidates; and which fields hold them."""
    lines = read_task_file(path, choice.is_numbered)
    table = unfold_rows(lines, NESTED)
    made = _choose_columns(table, choice) if truths else choice
    groups: dict[tuple[str, str], list[RawRow]] = {}
    for line in lines.rows:
        for row in unfold(line, NESTED):
            alone = "" if row is line else line.where
            groups.setdefault((text_of(row, made.texts[0]), alone), []).append(row)
    questions = tuple(_example(query, rows, made, truths) for (query, _), rows in groups.items())
    return ExampleSet(table.name, questions, tuple(rows[0].where for rows in groups.values())), made


def _choose_columns(table: TaskFile, choice: ColumnChoice) -> ColumnChoice:
    """Two texts and a label: those that were named, or those with usual names."""
    have = {name.lower(): name for name in table.columns}
    query = next((have[name] for name in QUERIES if name in have), "")
    candidate = next((have[name] for name in CANDIDATES if name in have and have[name] != query), "")
    relevance = next((have[name] for name in ("relevance", "relevant") if name in have), "")
    pair = (query, candidate) if query and candidate else ()
    made = choose_columns(table, ColumnChoice(choice.texts or pair, choice.label or relevance))
    if len(made.texts) != 2:
        raise InputError(
            f"{table.name}: ranking needs a query and a candidate in each row, found only "
            f"{', '.join(map(repr, made.texts))}. Name them: --text-columns QUERY,CANDIDATE --label-column LABEL."
        )
    return made


def _example(query: str, rows: list[RawRow], choice: ColumnChoice, truths: bool) -> RankingExample:
    candidates = tuple(text_of(row, choice.texts[1]) for row in rows)
    return RankingExample(query, candidates, tuple(_relevance(row, choice.label) for row in rows) if truths else ())


def _relevance(row: RawRow, name: str) -> float:
    written = truth_of(row, name)
    try:
        value = _WORDS[written.lower()] if written.lower() in _WORDS else float(written)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(
            f"{row.where}: the label {written!r} does not say how relevant the candidate is. Write 0 for not at all, 1 "
            "or more for relevant."
        )
    return value
