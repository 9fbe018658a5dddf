"""Multiple-choice files: every form gives the same questions, and what cannot be asked is refused with its line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from little_task import little_tokenizer, write_lines

from unmask.core.errors import InputError
from unmask.finetuning.data.choice import ChoiceExample, read_choice
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, split_dev
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.task_data import infer_task_type
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.protocol import TaskType

SKY = ChoiceExample(("the sky", "what is it"), ("blue", "red", "wet"), "red")
SEA = ChoiceExample(("the sea", "how is it"), ("blue", "red", "wet"), "wet")


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def flat(context: str, question: str, answer: object) -> dict[str, object]:
    return {"context": context, **asked(question, answer)}


def asked(question: str, answer: object) -> dict[str, object]:
    return {"question": question, "choices": ["blue", "red", "wet"], "answer": answer}


FORMS = {
    "text.jsonl": lines(flat("the sky", "what is it", "red"), flat("the sea", "how is it", "wet")),
    "number.jsonl": lines(flat("the sky", "what is it", 1), flat("the sea", "how is it", 2)),
    "letter.jsonl": lines(
        {"article": "the sky", "question": "what is it", "options": ["blue", "red", "wet"], "answer": "B"},
        {"article": "the sea", "question": "how is it", "options": ["blue", "red", "wet"], "answer": "c"},
    ),
    "nested.jsonl": lines(
        {"id": 1, "context": "the sky", "qas": [asked("what is it", "red")]},
        {"id": 2, "context": "the sea", "qas": [asked("how is it", "wet")]},
    ),
    "letters.csv": "context,question,A,B,C,answer\n"
    "the sky,what is it,blue,red,wet,B\nthe sea,how is it,blue,red,wet,C\n",
    "endings.csv": "sent1,sent2,ending0,ending1,ending2,label\n"
    "the sky,what is it,blue,red,wet,1\nthe sea,how is it,blue,red,wet,2\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_questions(tmp_path, name):
    path = tmp_path / name
    path.write_text(FORMS[name], encoding="utf-8")
    assert infer_task_type(path, NO_COLUMN_CHOICE) is TaskType.MULTIPLE_CHOICE
    sheet, choice = read_choice(path)
    assert sheet.examples == (SKY, SEA)
    assert read_choice(path, choice)[0] == sheet  # a second file is read by the same fields
    assert [question.truth for question in read_choice(path, choice, truths=False)[0].examples] == ["", ""]


def test_fields_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("stem,good,bad,which\nwhy,because,never,0\nhow,so,no,1\n", encoding="utf-8")
    sheet, _ = read_choice(path, ColumnChoice(("stem", "good", "bad"), "which"))
    assert [(one.context, one.choices, one.truth) for one in sheet.examples] == [
        (("why",), ("because", "never"), "because"),
        (("how",), ("so", "no"), "no"),
    ]
    assert infer_task_type(path, ColumnChoice(("stem",), "which")) is TaskType.CLASSIFICATION


def test_two_texts_with_short_names_are_no_choices(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,label\none,two,0\n", encoding="utf-8")
    assert infer_task_type(path, NO_COLUMN_CHOICE) is TaskType.CLASSIFICATION


def test_numbers_as_choices_are_texts_first(tmp_path):
    rows = [{"question": "two", "choices": ["3", "2", "1"], "answer": text} for text in ("2", "1")]
    sheet, _ = read_choice(write_lines(tmp_path / "a.jsonl", rows))
    assert [question.truth for question in sheet.examples] == ["2", "1"]


REFUSED = {
    "not among the choices": (flat("c", "q", "green"), r"a.jsonl:2: the answer 'green' is none of the 3 choices"),
    "beyond the last": ({**flat("c", "q", "green"), "answer": 3}, "a.jsonl:2: the answer '3' is none of the 3 choices"),
    "missing answer": (
        {**flat("c", "q", "red"), "answer": None},
        r"a.jsonl:2: the answer is missing \(column 'answer'\)",
    ),
    "single choice": ({**flat("c", "q", "red"), "choices": ["red"]}, "a.jsonl:2: .* two choices or more, found 1"),
    "empty choice": ({**flat("c", "q", "red"), "choices": ["red", " "]}, "a.jsonl:2: one of the 2 choices is empty"),
    "no list": (
        {**flat("c", "q", "red"), "choices": "red"},
        "a.jsonl:2: the choices 'choices' should be a list and are text",
    ),
    "no question": ({"context": "c", "choices": ["a", "b"], "answer": "a"}, "a.jsonl:2: there is no column 'question'"),
    "no text": ({**flat("c", "q", "red"), "context": 5}, "a.jsonl:2: the column 'context' should hold text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused_with_its_line(tmp_path, name):
    row, complaint = REFUSED[name]
    first = flat("the sky", "what is it", "red")
    with pytest.raises(InputError, match=complaint):
        read_choice(write_lines(tmp_path / "a.jsonl", [first, row, first]))


def test_a_nested_question_is_named_in_the_complaint(tmp_path):
    row = {"context": "c", "qas": [asked("q", "red"), asked("r", "green")]}
    with pytest.raises(InputError, match=r"a.jsonl:1 \(qas 2\): the answer 'green'"):
        read_choice(write_lines(tmp_path / "a.jsonl", [row]))


def test_fields_that_are_not_there_are_told_with_those_that_are(tmp_path):
    with pytest.raises(InputError, match=r"needs a context or a question .* it has 'question', 'choices'. Name them"):
        read_choice(write_lines(tmp_path / "a.jsonl", [{"question": "q", "choices": ["a", "b"]}]))


def test_questions_about_one_context_stay_on_one_side(tmp_path):
    rows = [{"context": f"c{i}", "qas": [asked("q", "red"), asked("r", "wet")]} for i in range(10)]
    learned, judged = split_dev(read_choice(write_lines(tmp_path / "a.jsonl", rows))[0], 0.3, 0)
    assert (len(learned), len(judged), judged.overlap(learned)) == (14, 6, 0)


def test_a_row_holds_the_context_and_then_the_question_with_a_choice():
    tokenizer, vocab = little_tokenizer(), little_tokenizer().vocab
    questions = (
        ChoiceExample(("今天", "天气"), ("好", "很好"), "很好"),
        ChoiceExample(("很",), ("好", "脏", "吵"), "好"),
    )
    done: list[int] = []
    exercise = MultipleChoiceTask().encode(
        ExampleSet("a", questions, ("a:1", "a:2")), tokenizer, LengthLimits(24), done.append
    )
    assert exercise.group_offsets.tolist() == [0, 2, 5]
    assert exercise.targets.value.tolist() == [0, 1, 1, 0, 0]
    assert done == [2]
    ids = [
        exercise.rows.ids[a:b].tolist() for a, b in zip(exercise.rows.offsets, exercise.rows.offsets[1:], strict=False)
    ]
    word = {
        text: tokenizer.pipeline.encode(text, add_special_tokens=False).ids
        for text in ("今天", "天气", "好", "很好", "很")
    }
    assert ids[1] == [vocab.cls, *word["今天"], vocab.sep, *word["天气"], *word["很好"], vocab.sep]
    assert ids[2] == [vocab.cls, *word["很"], vocab.sep, *word["好"], vocab.sep]
    (target,) = exercise.take(np.array([1, 0])).targets
    assert (target.groups.tolist(), target.value.tolist()) == ([0, 3, 5], [1, 0, 0, 0, 1])
