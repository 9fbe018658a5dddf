"""Files with several labels a row: what is read, and what is refused with its line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from little_task import write_lines

from unmask.config.pooling import Pooling
from unmask.core.codec import decode, encode
from unmask.core.errors import InputError
from unmask.finetuning.data.classification import read_multilabel
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.task_data import infer_task_type, load_task_data
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.multilabel import MultiLabelTask
from unmask.finetuning.tasks.protocol import TaskDefinition, TaskType


def truths(path, choice=NO_COLUMN_CHOICE) -> list[tuple[str, ...]]:
    return [question.truth for question in read_multilabel(path, choice)[0].examples]


def test_lists_are_read_as_they_are(tmp_path):
    rows = [
        {"text": "a", "title": "x", "topics": ["oil, raw", "gas"]},
        {"text": "b", "title": "y", "topics": []},
        {"text": "c", "title": "z", "topics": ["gas", "gas", 3]},
    ]
    path = write_lines(tmp_path / "a.jsonl", rows)
    sheet, choice = read_multilabel(path)
    assert truths(path) == [("oil, raw", "gas"), (), ("gas", "3")]
    assert choice == ColumnChoice(("text",), "topics")
    assert infer_task_type(path, NO_COLUMN_CHOICE) is TaskType.MULTILABEL
    assert sheet.examples[1].to_json() == {"text": "b", "labels": []}


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (("oil;gas", "oil, raw", ""), [("oil", "gas"), ("oil, raw",), ()]),
        (("oil|gas,raw", "oil|", "x"), [("oil", "gas,raw"), ("oil",), ("x",)]),
        (("oil, gas", "gas", "gas,gas"), [("oil", "gas"), ("gas",), ("gas",)]),
        (("oil", "gas", " "), [("oil",), ("gas",), ()]),
    ],
)
def test_one_mark_stands_between_labels_in_the_whole_file(tmp_path, cells, found):
    path = tmp_path / "a.csv"
    path.write_text("text,labels\n" + "".join(f'words,"{cell}"\n' for cell in cells), encoding="utf-8")
    assert truths(path) == found
    # A comma may belong to a name; a cell with one is a list only if someone says so.
    listed = ";" in cells[0] or "|" in cells[0]
    assert infer_task_type(path, NO_COLUMN_CHOICE) is (TaskType.MULTILABEL if listed else TaskType.CLASSIFICATION)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"text": "a"}, "a.jsonl:2: the labels are missing"),
        ({"text": "a", "labels": None}, "a.jsonl:2: the labels are missing"),
        (
            {"text": "a", "labels": ["x", ["y"]]},
            "a.jsonl:2: each label in 'labels' should be a word or a number; one is a list",
        ),
        ({"text": "a", "labels": {"x": 1}}, "a.jsonl:2: .* one is an object"),
        ({"labels": ["x"]}, "a.jsonl:2: there is no column 'text'"),
    ],
)
def test_what_cannot_be_a_set_of_labels_is_refused_with_its_line(tmp_path, row, complaint):
    with pytest.raises(InputError, match=complaint):
        read_multilabel(write_lines(tmp_path / "a.jsonl", [{"text": "b", "labels": ["x"]}, row]))


@pytest.mark.parametrize(
    ("first", "choice", "kind"),
    [
        ({"text": "a", "label": "x", "genres": ["y"]}, NO_COLUMN_CHOICE, TaskType.CLASSIFICATION),
        ({"text": "a", "label": "x", "genres": ["y"]}, ColumnChoice(("text",), "genres"), TaskType.MULTILABEL),
        ({"text": "a", "label": ["x"]}, NO_COLUMN_CHOICE, TaskType.MULTILABEL),
    ],
)
def test_a_list_is_a_set_of_labels_unless_there_is_a_label(tmp_path, first, choice, kind):
    assert infer_task_type(write_lines(tmp_path / "a.jsonl", [first]), choice) is kind


def test_a_label_that_was_never_learned_is_refused(tmp_path):
    train = write_lines(tmp_path / "train.jsonl", [{"text": f"t{i}", "labels": ["a", "b"][: i % 3]} for i in range(6)])
    dev = write_lines(tmp_path / "dev.jsonl", [{"text": "x", "labels": ["a"]}, {"text": "y", "labels": ["a", "c"]}])
    with pytest.raises(
        InputError, match=r"dev.jsonl:2: the label 'c' does not occur in the training file, which has a, b"
    ):
        load_task_data(train, dev)


@pytest.mark.parametrize("labels", [[], ["a"]])
def test_fewer_than_two_labels_are_refused(tmp_path, labels):
    path = write_lines(tmp_path / "a.jsonl", [{"text": f"t{i}", "labels": labels} for i in range(4)])
    with pytest.raises(InputError, match="at least two"):
        load_task_data(path, None, TaskOptions(task_type=TaskType.MULTILABEL))


def test_what_was_learned_from_a_file_comes_back_from_json(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": f"t{i}", "labels": ["b", "a"][: i % 3]} for i in range(20)])
    job = load_task_data(path, None, TaskOptions(pooling=Pooling.MEAN))
    assert job.task == MultiLabelTask(("a", "b"), pooling=Pooling.MEAN)
    assert decode(json.loads(json.dumps(encode(job.task))), TaskDefinition) == job.task
    assert job.task.bits([("b",), (), ("b", "a")]).tolist() == np.array([[0, 1], [0, 0], [1, 1]]).tolist()
    assert any("2 labels: b" in sentence for sentence in job.notes)
