"""Files of questions about passages, in the forms in which they are handed around, as one flat list.

What arrives: a `.json` file as SQuAD, CMRC or DRCD have it; or a table with a passage or a question in each row.
What leaves: one `Row` for each question, its passage beside it, and the names of the fields that matter.
What never happens here: a look at an answer. `questions.py` reads the rows.

An object that holds a list of passages or questions lends its fields to everything in that list; so articles,
paragraphs and questions may be nested in any way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import json_type_name

QUESTIONS = ("question", "query_text", "query")
PASSAGES = ("context", "context_text", "passage", "paragraph", "text", "document")
ANSWERS = ("answers", "answer", "answer_text")
IDS = ("id", "query_id", "question_id", "qid")
LISTS = ("data", "paragraphs", "qas", "questions")
"""What lists are called, from the outside to the inside: articles, paragraphs, questions."""
CHOICES = ("choices", "choice", "options", "candidates")
"""Where one of these stands beside a question, its answer is not copied from the passage."""

_Fields: TypeAlias = Mapping[str, object]


def question_rows(path: Path, numbered: bool = False) -> tuple[str, tuple[RawRow, ...]]:
    """The name of a file and its questions, each with the fields of its passage."""
    source, form = find_file(path, (TableFormat.JSON, *FORMATS_WITH_COLUMNS))
    lines = byte_lines(source)
    if form is TableFormat.JSON:
        value = read_nested(lines, source.name)
        rows = tuple(_named(_in_list(value if isinstance(value, list) else [value], source.name, {}), source.name))
    else:
        table = read_table(lines, source.name, form, numbered)
        rows = tuple(question for row in table.rows for question in _of_row(row))
    if not rows:
        raise InputError(f"{path} holds no questions. A question needs its passage and, to learn from, its answer.")
    return source.name, rows


def choose_qa_columns(rows: Sequence[RawRow], name: str, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """The fields of question, passage and answers: what was chosen, and for the rest the usual names."""
    if len(choice.texts) not in (0, 2):
        raise InputError(
            f"--text-columns names the question and the passage, in this order; found {', '.join(choice.texts)}."
        )
    have = dict.fromkeys(field for row in rows for field in row.fields)
    for given in filter(None, (*choice.texts, choice.label if truths else "")):
        if given not in have:
            raise InputError(f"{rows[0].where}: there is no field {given!r}; {_there(have)}.")
    texts = choice.texts or tuple(
        _usual(have, names, what, name) for what, names in (("question", QUESTIONS), ("passage", PASSAGES))
    )
    label = choice.label or (_usual(have, ANSWERS, "answer", name) if truths else "")
    return ColumnChoice(texts, label)


def is_span_qa_file(path: Path) -> bool:
    """Whether a file seems to ask for pieces of passages, by its form and the names in its first row."""
    source, form = find_file(path, tuple(TableFormat))
    if form not in FORMATS_WITH_COLUMNS:
        return form is TableFormat.JSON
    names = {name.lower() for name in read_table(byte_lines(source), source.name, form).columns}
    if names & {*CHOICES}:
        return False
    return bool(names & {*PASSAGES}) and ("qas" in names or all(names & {*some} for some in (QUESTIONS, ANSWERS)))


def id_of(fields: _Fields) -> str:
    """What a question is called; empty if it has no name."""
    found = next((fields[name] for name in IDS if isinstance(fields.get(name), str | int)), "")
    return str(found)


def _of_row(row: RawRow) -> Iterable[RawRow]:
    """The questions of a row: it is one, or it is a passage with several."""
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
    """The questions of an article or a passage, or the one question that this is."""
    held = _list_in(node)
    if not held:
        yield {**above, **node}
        return
    lent = {name: value for name, value in node.items() if name != held and name not in IDS}
    yield from _in_list(cast("list[object]", node[held]), where, {**above, **lent})


def _list_in(node: _Fields) -> str:
    """The field that holds a list of passages or questions; empty if there is none."""
    return next((name for name in LISTS if isinstance(node.get(name), list)), "")


def _usual(have: Iterable[str], names: Sequence[str], what: str, file: str) -> str:
    lower = {name.lower(): name for name in have}
    found = next((lower[name] for name in names if name in lower), "")
    if not found:
        raise InputError(
            f"{file}: no field has a usual name for the {what}; {_there(have)}. Name them: --text-columns QUESTION,PASSAGE "
            "--label-column ANSWERS."
        )
    return found


def _there(have: Iterable[str]) -> str:
    names = list(have)
    return f"it has {', '.join(map(repr, names[:12]))}{' and more' if len(names) > 12 else ''}"
