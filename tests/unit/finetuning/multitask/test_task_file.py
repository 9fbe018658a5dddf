"""A file of tasks: what it may say, and a sentence for everything that it may not."""

from __future__ import annotations

import pytest
from little_many import DECLARED, write_tasks

from unmask.core.codec import decode, encode
from unmask.core.errors import InputError
from unmask.finetuning.multitask.task_file import read_tasks
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.finetuning.tasks.regression import RegressionTask
from unmask.finetuning.tasks.san_pair import SANPairTask


def test_tasks_come_in_order_with_their_own_heads(tmp_path):
    tasks = read_tasks(write_tasks(tmp_path))
    assert [task.name for task in tasks] == ["mood", "same", "like"]
    assert [type(task.data.task) for task in tasks] == [ClassificationTask, SANPairTask, RegressionTask]
    assert [task.data.task.objective.name for task in tasks] == ["mood", "same", "like"]
    assert [task.weight for task in tasks] == [1.0, 1.0, 0.5]
    assert [len(task.data.train) for task in tasks] == [40, 24, 15]
    assert tasks[1].data.columns.texts == ("premise", "hypothesis")
    for task in tasks:
        assert decode(encode(task.data.task), TaskDefinition) == task.data.task


def test_paths_are_relative_to_the_file_and_fields_may_be_named(tmp_path, monkeypatch):
    same = '[tasks.a]\ntrain = "same.train.jsonl"\n'
    path = write_tasks(tmp_path / "deep", same + 'text_columns = ["hypothesis", "premise"]\n')
    monkeypatch.chdir(tmp_path)
    (task,) = read_tasks(path)
    assert task.data.columns.texts == ("hypothesis", "premise")
    assert isinstance(task.data.task, ClassificationTask)
    assert len(task.data.train) + len(task.data.dev) == 24
    columns = 'text_columns="hypothesis, premise"\nlabel_column="label"'
    (other,) = read_tasks(write_tasks(tmp_path / "deep", same + columns))
    assert other.data.columns == task.data.columns


MOOD = '[tasks.mood]\ntrain = "mood.train.jsonl"\n'


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("", "declares no task"),
        ("tasks = 3", "declares no task"),
        ("[tasks]\n", "declares no task"),
        (MOOD + "[other]\n", "'other' is outside"),
        ("[tasks.mood]\ntask_type = 'classification'\n", "task 'mood': the training file is missing"),
        (MOOD + "epochs = 3\n", "task 'mood': there is no key 'epochs'; known are train, dev, task_type"),
        (
            MOOD + "task_type = 'sort'\n",
            "task 'mood': There is no task type 'sort'. Choose one of: auto, classification",
        ),
        (MOOD + "task_type = 'san-pair'\n", "task 'mood': .*mood.train.jsonl: a pair needs two texts"),
        (MOOD + "weight = 0\n", "task 'mood': `weight` should be a positive number, found 0"),
        (MOOD + "weight = true\n", "task 'mood': `weight` should be a positive number, found True"),
        (MOOD + "label_column = 3\n", "task 'mood': `label_column` should be a text in quotes, found 3"),
        (MOOD + "crf = 3\n", "task 'mood': TaskOptions.crf needs true or false, found '3'"),
        (MOOD + "text_columns = 3\n", "task 'mood': `text_columns` should be a text or a list"),
        (MOOD + "text_columns = 'missing'\n", "task 'mood': .*there is no column 'missing'"),
        (MOOD + "dev = 'nowhere.jsonl'\n", "task 'mood': .*nowhere.jsonl: there is no such file"),
        (MOOD + MOOD, "is no TOML file: Cannot declare .* twice"),
        (MOOD + MOOD.replace("mood]", "Mood]"), "the tasks mood and Mood have the same name"),
        (MOOD.replace("mood]", "encoder]"), "a task cannot be called 'encoder'"),
        (MOOD.replace("mood]", "'a/b']"), "a task cannot be called 'a/b'"),
        ("[tasks]\nmood = 'mood.jsonl'\n", "'mood' should be a table of its own"),
        ("[tasks.mood\n", "is no TOML file"),
    ],
)
def test_a_sentence_for_everything_that_cannot_work(tmp_path, declared, said):
    path = write_tasks(tmp_path, declared)
    with pytest.raises(InputError, match=said):
        read_tasks(path)


def test_other_wishes_reach_the_output(tmp_path):
    (plain,) = read_tasks(write_tasks(tmp_path, MOOD))
    (mean,) = read_tasks(write_tasks(tmp_path, MOOD + "pooling = 'mean'\n"))
    assert plain.data.task != mean.data.task


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read .*No such file"):
        read_tasks(tmp_path / "tasks.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_tasks(tmp_path)


def test_another_label_in_the_second_file_is_refused_with_its_line(tmp_path):
    path = write_tasks(tmp_path, DECLARED.replace('dev = "mood.dev', 'dev = "same.dev'))
    with pytest.raises(InputError, match="task 'mood'"):
        read_tasks(path)
