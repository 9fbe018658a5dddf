"""Ranking files: queries with candidates, some of them relevant.

A file has a row for each candidate (query, candidate, label) or, in JSON lines, one for each query: `{"query": ...,
"candidates": [{"text": ..., "label": 1}, ...]}`. A label is 0 for an irrelevant candidate and positive for a relevant
one. Rows with the same query are one group, placed where its first row is; a line with all candidates is its own group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import ColumnChoice, choose_columns, find_column
from unmask.finetuning.data.dataset import ExampleSet, TaskReader, Texts
from unmask.finetuning.data.table_file import TaskFile, label_cell, text_cell, unfold_row

NESTED = ("candidates", "documents", "passages", "answers")
QUERIES = ("query", "question", "text")
CANDIDATES = ("text", "candidate", "passage", "document", "answer", "title", "sentence")
RELEVANCES = ("relevance", "relevant")
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A query and its candidates."""

    query: str
    candidates: tuple[str, ...]
    truth: tuple[float, ...] = ()
    """The relevance of each candidate; empty if unknown."""

    @property
    def texts(self) -> Texts:
        """The query: all its candidates stay together."""
        return (self.query,)

    def to_json(self) -> dict[str, object]:
        """The query, its candidates, and their relevance if it is known."""
        labels = {"labels": list(self.truth)} if self.truth else {}
        return {"query": self.query, "candidates": list(self.candidates), **labels}


def _choose(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """Query and candidate columns and a label column: as named, or by usual names."""
    if not truths:
        return choice
    table = table.unfold(NESTED)
    query = find_column(table.columns, QUERIES)
    candidate = find_column(table.columns, CANDIDATES, (query,))
    pair = (query, candidate) if query and candidate else ()
    label = choice.label or find_column(table.columns, RELEVANCES)
    chosen = choose_columns(table, ColumnChoice(choice.texts or pair, label))
    if len(chosen.texts) != 2:
        raise InputError(
            f"{table.name}: ranking needs a query and a candidate in each row, found only "
            f"{', '.join(map(repr, chosen.texts))}. Name them: --text-columns QUERY,CANDIDATE --label-column LABEL."
        )
    return chosen


def _examples(table: TaskFile, columns: ColumnChoice, truths: bool) -> ExampleSet[RankingExample]:
    groups: dict[tuple[str, str], list[RawRow]] = {}
    for line in table.rows:
        for row in unfold_row(line, NESTED):
            own_group = "" if row is line else line.where
            groups.setdefault((text_cell(row, columns.texts[0]), own_group), []).append(row)
    examples = tuple(_example(query, rows, columns, truths) for (query, _), rows in groups.items())
    return ExampleSet(table.name, examples, tuple(rows[0].where for rows in groups.values()))


read_ranking = TaskReader(_choose, _examples)
"""Reads queries with their candidates."""


def _example(query: str, rows: list[RawRow], columns: ColumnChoice, truths: bool) -> RankingExample:
    candidates = tuple(text_cell(row, columns.texts[1]) for row in rows)
    return RankingExample(query, candidates, tuple(_relevance(row, columns.label) for row in rows) if truths else ())


def _relevance(row: RawRow, name: str) -> float:
    label = label_cell(row, name)
    try:
        value = _WORDS[label.lower()] if label.lower() in _WORDS else float(label)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(
            f"{row.where}: the label {label!r} is no relevance. Write 0 for irrelevant, 1 or more for relevant."
        )
    return value
