"""Extractive question answering: examples and their reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unmask.core.errors import InputError
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, TaskReader, Texts
from unmask.finetuning.data.span_qa.answers import START, AnswerText, gold_answers, locate_answer
from unmask.finetuning.data.span_qa.files import choose_qa_columns, id_of, load_questions
from unmask.finetuning.data.table_file import TaskFile, text_cell


@dataclass(frozen=True, slots=True)
class QAExample:
    """A question, its passage, and all correct answers; the first one is the training target."""

    id: str
    question: str
    passage: str
    answers: tuple[AnswerText, ...] = ()
    is_impossible: bool = False
    """Whether the passage holds no answer (SQuAD 2.0)."""

    @property
    def texts(self) -> Texts:
        """The passage: questions about one passage stay together."""
        return (self.passage,)

    @property
    def has_target(self) -> bool:
        """Whether the answer is known, or known not to exist."""
        return self.is_impossible or bool(self.answers)

    def to_json(self) -> dict[str, object]:
        """The question, its passage, and the answers if they are known."""
        answers = [{"text": piece.text, "start": piece.start} for piece in self.answers]
        known = {"answers": answers} if self.has_target else {}
        return {"id": self.id, "question": self.question, "passage": self.passage, **known}


def count_units(text: str) -> int:
    """An estimate of the token count: one for each Chinese character, one for each word."""
    return len(_UNIT.findall(text))


_UNIT = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]")


def _examples(table: TaskFile, columns: ColumnChoice, truths: bool) -> ExampleSet[QAExample]:
    found = [
        _example(row, columns, truths, id_of(row.fields) or str(number)) for number, row in enumerate(table.rows, 1)
    ]
    examples = tuple(example for example, _ in found)
    _check_unique_ids(examples, table.source_lines)
    return ExampleSet(table.name, examples, table.source_lines, _notes(sum(moved for _, moved in found)))


read_span_qa = TaskReader(choose_qa_columns, _examples, load_questions)
"""Reads questions about passages."""


def _example(row: RawRow, choice: ColumnChoice, truths: bool, name: str) -> tuple[QAExample, int]:
    """A question, and how many of its answers are not at the place that the file names."""
    question, passage = (_valid_text(row, name) for name in choice.texts)
    if not passage.strip():
        raise InputError(
            f"{row.where}: the passage is empty (column {choice.texts[1]!r}). Add it, or remove the question."
        )
    if not truths:
        return QAExample(name, question, passage), 0
    written, impossible = gold_answers(row, choice.label)
    pieces = tuple(locate_answer(one, passage, row.where) for one in written)
    moved = sum(one.has_start and one.start != piece.start for one, piece in zip(written, pieces, strict=True))
    return QAExample(name, question, passage, pieces, impossible), moved


def _valid_text(row: RawRow, name: str) -> str:
    text = text_cell(row, name)
    return text if text.isascii() else check_surrogates(text, row.where)


def _check_unique_ids(questions: Sequence[QAExample], where: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for question, place in zip(questions, where, strict=True):
        if question.id in seen:
            raise InputError(
                f"{place}: the id {question.id!r} is already used at {seen[question.id]}. Give each question its "
                "own id."
            )
        seen[question.id] = place


def _notes(moved: int) -> tuple[str, ...]:
    if not moved:
        return ()
    return (f"note: {moved:,} answers are not at their {START!r}; the nearest occurrence of the same text was taken",)
