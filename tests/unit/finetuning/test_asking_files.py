"""Files of questions about passages: every form reads the same, and every mistake is named with its place."""

from __future__ import annotations

import gzip
import json

import pytest
from little_task import write_lines

from unmask.core.errors import InputError
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.span_qa.answers import AnswerText
from unmask.finetuning.data.span_qa.files import is_span_qa_file
from unmask.finetuning.data.span_qa.questions import QAExample, read_span_qa
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.tasks.protocol import TaskType

PASSAGE = "小明住在杭州，小红也住在杭州。"
SPANS = [
    QAExample("a", "小明住在哪里？", PASSAGE, (AnswerText("杭州", 4),)),
    QAExample("b", "谁也住在杭州？", PASSAGE, (AnswerText("小红", 7), AnswerText("小红也", 7))),
]
NONE = QAExample("c", "小刚住在哪里？", PASSAGE, is_impossible=True)


def squad(*questions):
    return [
        {
            "id": one.id,
            "question": one.question,
            "answers": [{"text": piece.text, "answer_start": piece.start} for piece in one.answers],
            "is_impossible": one.is_impossible,
        }
        for one in questions
    ]


def written(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def article(*questions):
    return {"version": "2.0", "data": [{"title": "t", "paragraphs": [{"context": PASSAGE, "qas": squad(*questions)}]}]}


def test_the_nested_form_of_squad(tmp_path):
    sheet, choice = read_span_qa(written(tmp_path / "train.json", article(*SPANS, NONE)))
    assert list(sheet.examples) == [*SPANS, NONE]
    assert choice == ColumnChoice(("question", "context"), "answers")
    assert sheet.source_lines[1] == f"{tmp_path / 'train.json'}, question b"
    assert sheet.notes == ()


def test_a_packed_file_reads_the_same(tmp_path):
    path = tmp_path / "train.json.gz"
    path.write_bytes(gzip.compress(json.dumps(article(*SPANS)).encode()))
    assert list(read_span_qa(path)[0].examples) == SPANS


def test_the_flat_form_of_cmrc_takes_the_first_place_of_a_text(tmp_path):
    asked = [
        {"query_id": one.id, "query_text": one.question, "answers": [piece.text for piece in one.answers]}
        for one in SPANS
    ]
    path = written(tmp_path / "cmrc.json", [{"context_id": "P", "context_text": PASSAGE, "title": "t", "qas": asked}])
    sheet, choice = read_span_qa(path)
    assert list(sheet.examples) == SPANS
    assert choice == ColumnChoice(("query_text", "context_text"), "answers")


def test_a_passage_in_each_line(tmp_path):
    path = write_lines(tmp_path / "train.jsonl", [{"id": "P", "context": PASSAGE, "qas": squad(*SPANS)}])
    sheet, _ = read_span_qa(path)
    assert list(sheet.examples) == SPANS
    assert sheet.source_lines[0] == f"{path}:1, question a"


def test_a_question_in_each_line_as_datasets_has_it(tmp_path):
    rows = [
        {
            "id": one.id,
            "context": PASSAGE,
            "question": one.question,
            "answers": {
                "text": [piece.text for piece in one.answers],
                "answer_start": [piece.start for piece in one.answers],
            },
        }
        for one in (*SPANS, NONE)
    ]
    sheet, _ = read_span_qa(write_lines(tmp_path / "train.jsonl", rows))
    assert list(sheet.examples) == [*SPANS, NONE]  # empty lists say that there is no answer
    assert sheet.source_lines[2] == f"{tmp_path / 'train.jsonl'}:3"


def test_a_table_with_a_place_for_each_answer(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(f"question\tpassage\tanswer\tanswer_start\n谁？\t{PASSAGE}\t杭州\t12\n", encoding="utf-8")
    (question,) = read_span_qa(path)[0].examples
    assert (question.id, question.answers) == ("1", (AnswerText("杭州", 12),))


def test_fields_with_other_names_are_named(tmp_path):
    path = write_lines(tmp_path / "train.jsonl", [{"frage": "谁？", "absatz": PASSAGE, "antwort": "小红"}])
    with pytest.raises(InputError, match=r"no column has a usual name for the question; it has 'frage', 'absatz'"):
        read_span_qa(path)
    (question,) = read_span_qa(path, ColumnChoice(("frage", "absatz"), "antwort"))[0].examples
    assert question.answers == (AnswerText("小红", 7),)
    with pytest.raises(InputError, match=r"train.jsonl:1: there is no column 'satz'"):
        read_span_qa(path, ColumnChoice(("frage", "satz"), "antwort"))
    with pytest.raises(InputError, match=r"names the question and the passage"):
        read_span_qa(path, ColumnChoice(("frage",), "antwort"))


def test_new_questions_need_no_answers(tmp_path):
    path = write_lines(tmp_path / "new.jsonl", [{"question": "谁？", "context": PASSAGE}])
    (question,) = read_span_qa(path, ColumnChoice(("question", "context"), "answers"), truths=False)[0].examples
    assert not question.has_target
    assert question.to_json() == {"id": "1", "question": "谁？", "passage": PASSAGE}
    assert SPANS[0].to_json()["answers"] == [{"text": "杭州", "start": 4}]


def test_an_answer_that_stands_elsewhere_is_found_at_the_nearest_place_and_told(tmp_path):
    asked = squad(*SPANS)
    asked[0]["answers"][0]["answer_start"] = 11  # 杭州 begins at 4 and at 12
    asked[1]["answers"][1]["answer_start"] = -1
    sheet, _ = read_span_qa(write_lines(tmp_path / "train.jsonl", [{"context": PASSAGE, "qas": asked}]))
    assert [question.answers[-1].start for question in sheet.examples] == [12, 7]
    assert sheet.notes == (
        "note: 2 answers are not at their 'answer_start'; the nearest occurrence of the same text was taken",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answers": [{"text": "上海", "answer_start": 4}]}, "the answer '上海' does not occur in the passage"),
        ({"answers": []}, "the question has no answer. Add one"),
        ({"answers": [{"text": "", "answer_start": -1}]}, "the question has no answer. Add one"),
        ({"is_impossible": True}, "'is_impossible' marks the question as unanswerable, but there is an answer"),
        ({"answers": [7]}, "an answer should be text and is a number"),
        ({"answers": 7}, "the column 'answers' should hold answers and holds a number"),
        (
            {"answers": [{"text": "杭州", "answer_start": "four"}]},
            "'answer_start' should be a whole number, found 'four'",
        ),
        ({"answers": {"text": ["杭州"], "answer_start": []}}, "1 answers, but 0 start positions"),
        ({"question": None}, "the column 'question' should hold text and holds nothing"),
        ({"question": "\ud83d"}, "half of a surrogate pair"),
        ({"context": " "}, "the passage is empty (column 'context')"),
    ],
)
def test_a_mistake_is_refused_with_the_question(tmp_path, change, said):
    value = article(*SPANS)
    value["data"][0]["paragraphs"][0]["qas"][0] |= change
    path = tmp_path / "train.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_span_qa(path)
    assert str(refused.value).startswith(f"{path}, question a: ")
    assert said in str(refused.value)


def test_a_missing_passage_and_a_missing_question(tmp_path):
    path = write_lines(tmp_path / "train.jsonl", [{"context": PASSAGE, "qas": squad(*SPANS)}, {"qas": squad(NONE)}])
    with pytest.raises(InputError, match=r"train.jsonl:2, question c: there is no column 'context'"):
        read_span_qa(path)
    path = write_lines(tmp_path / "train.jsonl", [{"context": PASSAGE, "qas": squad(*SPANS)}, {"context": PASSAGE}])
    with pytest.raises(InputError, match=r"train.jsonl:2: there is no column 'question'"):
        read_span_qa(path)


def test_two_questions_with_one_id(tmp_path):
    path = written(tmp_path / "train.json", article(*SPANS, SPANS[0]))
    with pytest.raises(InputError, match=r"question a: the id 'a' is already used at .*train.json, question a"):
        read_span_qa(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"data": [\n{"context": "' + PASSAGE + '"}]}', "train.json:2: invalid UTF-8"),
        ('{"data": [\n}', "train.json:2: broken JSON"),
        ('{"a": 1}\n{"a": 2}', "train.json:2: broken JSON .*rename it to .jsonl"),
        ("[1]", "train.json: an object with a passage or a question was expected; found a number"),
        ('{"data": []}', "train.json holds no questions"),
    ],
)
def test_files_that_are_not_what_they_should_be(tmp_path, content, said):
    (tmp_path / "train.json").write_text(content, encoding="gb18030")
    with pytest.raises(InputError, match=said):
        read_span_qa(tmp_path / "train.json")


def test_the_file_tells_that_spans_are_asked_for(tmp_path):
    assert is_span_qa_file(written(tmp_path / "a.json", article(*SPANS)))
    assert is_span_qa_file(write_lines(tmp_path / "b.jsonl", [{"context": PASSAGE, "qas": []}]))
    assert is_span_qa_file(
        write_lines(tmp_path / "c.jsonl", [{"question": "谁？", "context": PASSAGE, "answer": "小红"}])
    )
    choice = {"question": "谁？", "context": PASSAGE, "answer": "小红", "choices": ["小红", "小明"]}
    assert not is_span_qa_file(write_lines(tmp_path / "d.jsonl", [choice]))
    assert not is_span_qa_file(write_lines(tmp_path / "e.jsonl", [{"text": PASSAGE, "label": 1}]))


def test_a_job_never_splits_a_passage_and_refuses_silence_that_was_not_learned(tmp_path):
    passages = [f"第{number}号的人是小{name}。" for number, name in enumerate("明红刚强")]
    rows = [
        {"context": text, "qas": [{"id": f"{i}-{j}", "question": f"{j}？", "answers": [text[-2]]} for j in range(3)]}
        for i, text in enumerate(passages)
    ]
    train = write_lines(tmp_path / "train.jsonl", rows)
    job = load_task_data(train, None)
    assert job.task.task_type is TaskType.SPAN_QA
    assert len(job.dev) == 3
    assert job.dev.overlap(job.train) == 0
    dev = write_lines(tmp_path / "dev.jsonl", [{"context": PASSAGE, "qas": squad(NONE)}])
    with pytest.raises(InputError, match=r"dev.jsonl:1, question c: the question has no answer, but every question"):
        load_task_data(train, dev)
