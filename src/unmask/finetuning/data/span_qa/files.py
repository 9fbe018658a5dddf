"""Question-answering files as flat rows: SQuAD, CMRC and DRCD JSON, and tables with a passage or a question per row.

An object that holds a list of articles, passages or questions passes its other fields on to everything in that list, so
articles, paragraphs and questions may be nested in any way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import (
    FORMATS_WITH_COLUMNS,
    TableFormat,
    byte_lines,
    find_file,
    read_nested,
    read_table,
)
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import ColumnChoice, require_columns, usual_column
from unmask.finetuning.data.table_file import TaskFile, json_type_name

QUESTIONS = ("question", "query_text", "query")
PASSAGES = ("context", "context_text", "passage", "paragraph", "text", "document")
ANSWERS = ("answers", "answer", "answer_text")
IDS = ("id", "query_id", "question_id", "qid")
LISTS = ("data", "paragraphs", "qas", "questions")
"""Usual names of lists, from the outside to the inside: articles, paragraphs, questions."""
CHOICES = ("choices", "choice", "options", "candidates")
"""A question with one of these columns is multiple choice, not extractive."""

_Fields: TypeAlias = Mapping[str, object]


def load_questions(path: Path, columns: ColumnChoice) -> TaskFile:
    """One row for each question of a file, with the fields of its passage."""
    source, form = find_file(path, (TableFormat.JSON, *FORMATS_WITH_COLUMNS))
    lines = byte_lines(source)
    if form is TableFormat.JSON:
        value = read_nested(lines, source.name)
        rows = tuple(_named(_in_list(value if isinstance(value, list) else [value], source.name, {}), source.name))
    else:
        table = read_table(lines, source.name, form, columns.is_numbered)
        rows = tuple(question for row in table.rows for question in _of_row(row))
    if not rows:
        raise InputError(f"{path} holds no questions. A question needs its passage and, for training, its answer.")
    return TaskFile(source.name, form, tuple(dict.fromkeys(name for row in rows for name in row.fields)), rows)


_ADVICE = "Name them: --text-columns QUESTION,PASSAGE --label-column ANSWERS."


def choose_qa_columns(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """The columns of question, passage and answers: as named, or by usual names."""
    if len(choice.texts) not in (0, 2):
        raise InputError(
            f"--text-columns names the question and the passage, in this order; found {', '.join(choice.texts)}."
        )
    require_columns(table, filter(None, (*choice.texts, choice.label if truths else "")))
    texts = choice.texts or (
        usual_column(table, QUESTIONS, "the question", _ADVICE),
        usual_column(table, PASSAGES, "the passage", _ADVICE),
    )
    label = choice.label or (usual_column(table, ANSWERS, "the answer", _ADVICE) if truths else "")
    return ColumnChoice(texts, label)


def is_span_qa_file(path: Path) -> bool:
    """Whether a file holds questions about passages, by its format and the columns of its first row."""
    source, form = find_file(path, tuple(TableFormat))
    if form not in FORMATS_WITH_COLUMNS:
        return form is TableFormat.JSON
    names = {name.lower() for name in read_table(byte_lines(source), source.name, form).columns}
    if names & {*CHOICES}:
        return False
    return bool(names & {*PASSAGES}) and ("qas" in names or all(names & {*some} for some in (QUESTIONS, ANSWERS)))


def id_of(fields: _Fields) -> str:
    """The id of a question; empty if it has none."""
    found = next((fields[name] for name in IDS if isinstance(fields.get(name), str | int)), "")
    return str(found)


def _of_row(row: RawRow) -> Iterable[RawRow]:
    """The questions of a row, which is one question or a passage with several."""
    return _named(_inside(row.fields, row.where, {}), row.where) if _list_in(row.fields) else (row,)


def _named(questions: Iterable[_Fields], where: str) -> Iterator[RawRow]:
    for number, fields in enumerate(questions, start=1):
        yield RawRow(f"{where}, question {id_of(fields) or f'number {number}'}", fields)


def _in_list(nodes: Iterable[object], where: str, above: _Fields) -> Iterator[_Fields]:
    for node in nodes:
        if not isinstance(node, dict):
            raise InputError(
                f"{where}: an object with a passage or a question was expected; found {json_type_name(node)}."
            )
        yield from _inside(node, where, above)


def _inside(node: _Fields, where: str, above: _Fields) -> Iterator[_Fields]:
    """The questions of an article or a passage, or the object itself if it is a question."""
    name = _list_in(node)
    if not name:
        yield {**above, **node}
        return
    inherited = {key: value for key, value in node.items() if key != name and key not in IDS}
    yield from _in_list(cast("list[object]", node[name]), where, {**above, **inherited})


def _list_in(node: _Fields) -> str:
    """The field with a list of passages or questions; empty if there is none."""
    return next((name for name in LISTS if isinstance(node.get(name), list)), "")
