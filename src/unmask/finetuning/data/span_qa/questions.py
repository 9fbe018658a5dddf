"""Questions about passages whose answer is a piece of the passage, or that have no answer.

What arrives: a file of questions. What leaves: a `Sheet` of `PassageQuestion`s whose answers stand where they say.
What never happens here: two questions with one id, or a passage that is missing. Both are refused with their places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, Texts, text_of
from unmask.finetuning.data.span_qa.answers import START, AnswerText, gold_answers, locate_answer
from unmask.finetuning.data.span_qa.files import choose_qa_columns, id_of, question_rows


@dataclass(frozen=True, slots=True)
class QAExample:
    """A question, its passage, and all answers that count as right; the first is the one to learn."""

    id: str
    question: str
    passage: str
    answers: tuple[AnswerText, ...] = ()
    is_impossible: bool = False
    """Whether the passage holds no answer."""

    @property
    def texts(self) -> Texts:
        """The passage: whoever has read it for one question knows it for all."""
        return (self.passage,)

    @property
    def has_target(self) -> bool:
        """Whether the truth is known."""
        return self.is_impossible or bool(self.answers)

    def to_json(self) -> dict[str, object]:
        """The question, its passage, and the answers if they are known; none where there is none."""
        asked = {"id": self.id, "question": self.question, "passage": self.passage}
        answers = [{"text": piece.text, "start": piece.start} for piece in self.answers]
        return {**asked, "answers": answers} if self.has_target else dict(asked)


def read_span_qa(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[QAExample], ColumnChoice]:
    """The questions of a file, from the fields that were chosen or have usual names; and which fields these are."""
    name, rows = question_rows(path, choice.is_numbered)
    made = choose_qa_columns(rows, name, choice, truths)
    questions, moved = [], 0
    for number, row in enumerate(rows, start=1):
        question, elsewhere = _example(row, made, truths, id_of(row.fields) or str(number))
        questions.append(question)
        moved += elsewhere
    where = tuple(row.where for row in rows)
    _check_unique_ids(questions, where)
    return ExampleSet(name, tuple(questions), where, _notes(moved)), made


def count_units(text: str) -> int:
    """About how many tokens a text has: one for each Chinese character, one for each word."""
    return len(_UNIT.findall(text))


_UNIT = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]")


def _example(row: RawRow, choice: ColumnChoice, truths: bool, name: str) -> tuple[QAExample, int]:
    """A question, and how many of its answers stand elsewhere than the file says."""
    question, passage = (_whole(row, field) for field in choice.texts)
    if not passage.strip():
        raise InputError(
            f"{row.where}: the passage is empty (field {choice.texts[1]!r}). Add it, or remove the question."
        )
    if not truths:
        return QAExample(name, question, passage), 0
    written, impossible = gold_answers(row, choice.label)
    pieces = tuple(locate_answer(one, passage, row.where) for one in written)
    moved = sum(one.has_start and one.start != piece.start for one, piece in zip(written, pieces, strict=True))
    return QAExample(name, question, passage, pieces, impossible), moved


def _whole(row: RawRow, field: str) -> str:
    text = text_of(row, field)
    return text if text.isascii() else check_surrogates(text, row.where)


def _check_unique_ids(questions: Sequence[QAExample], where: Sequence[str]) -> None:
    met: dict[str, str] = {}
    for question, place in zip(questions, where, strict=True):
        if question.id in met:
            raise InputError(
                f"{place}: the id {question.id!r} stands at {met[question.id]} already. Answers are told by their ids; "
                "give each question its own."
            )
        met[question.id] = place


def _notes(moved: int) -> tuple[str, ...]:
    if not moved:
        return ()
    return (
        f"note: {moved:,} answers do not stand where {START!r} says; the nearest place with the same text was taken",
    )
