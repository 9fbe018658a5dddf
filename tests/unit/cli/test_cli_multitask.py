"""The command: from a file of tasks to one table of scores; it goes on after a stop, and refuses in sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from folder_net import BAD, GOOD, lines, network
from typer.testing import CliRunner

from unmask.api import multitask as multitask_module
from unmask.api.multitask import format_remark
from unmask.cli.multitask import multitask
from unmask.core.errors import InputError
from unmask.finetuning.artifact import read_task
from unmask.finetuning.export.hf import open_finetuned
from unmask.train.rundir.folder import is_finished

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(multitask)
TASKS = """
[tasks.mood]
train = "mood.jsonl"
dev = "mood.dev.jsonl"

[tasks.same]
train = "same.jsonl"
task_type = "san-pair"
"""


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """A folder with a small network and two tasks; one thread, because two are slower for so little."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    network(Path("net"))
    lines("mood.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(32)])
    lines("mood.dev.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(50, 60)])
    pairs = [{"premise": GOOD, "hypothesis": f"{(GOOD, BAD)[i % 2]}{i}", "label": i % 2} for i in range(20)]
    lines("same.jsonl", pairs)
    Path("tasks.toml").write_text(TASKS)
    yield
    torch.set_num_threads(before)


def run(*words: str):
    quick = ["--lr", "3e-3", "--batch-size", "8", "--device", "cpu", "--out", "out", "--epochs", "2"]
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["net", "tasks.toml", *quick, *words])


def test_a_trunk_a_folder_for_each_task_and_a_table_come_out():
    result = run("--epochs", "16")
    assert result.exit_code == 0, result.output
    for said in ("mood: mood.jsonl: 32 training rows", "same: 2 classes", "together", "mean", "out/encoder"):
        assert said in result.output
    assert "then alone" not in result.output
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "encoder",
        "finished.json",
        "mood",
        "record.jsonl",
        "run.json",
        "same",
    ]
    for name in ("mood", "same"):
        told = read_task(Path("out", name))
        assert told["metric"] == "accuracy"
        assert f"{told['metrics']['accuracy']:.4f}" in result.output
        answers = [json.loads(line) for line in Path("out", name, "predictions.jsonl").read_text().splitlines()]
        right = sum(answer["prediction"] == answer["label"] for answer in answers)
        assert right / len(answers) == pytest.approx(told["metrics"]["accuracy"])
        assert open_finetuned(Path("out", name)).task.objective.name == name
    assert read_task(Path("out/mood"))["metrics"]["accuracy"] > 0.8
    judged = [json.loads(line) for line in Path("out/record.jsonl").read_text().splitlines()]
    assert all(set(line["loss"]) == {"mood", "same"} for line in judged if line["kind"] == "eval")


def test_then_each_can_be_added_to_a_finished_run():
    assert run().exit_code == 0
    before = Path("out/mood/model.safetensors").read_bytes()
    result = run("--then-each", "1")
    assert result.exit_code == 0, result.output
    assert "out is fine-tuned already" in result.output
    assert "then alone" in result.output
    assert Path("out/mood/model.safetensors").read_bytes() == before
    for name in ("mood", "same"):
        assert is_finished(Path("out/each", name))
        assert open_finetuned(Path("out/each", name)).task == open_finetuned(Path("out", name)).task
    third = run("--then-each", "1")
    assert third.output.count("is fine-tuned already") == 3


def test_a_kill_in_the_middle_repeats_no_finished_part(monkeypatch):
    kept = []
    save = multitask_module.save_finetuned

    def stop(tuned, folder, base_model, facts):
        kept.append(folder.name)
        if folder.name == "same":
            raise RuntimeError("the plug")
        save(tuned, folder, base_model, facts)

    monkeypatch.setattr(multitask_module, "save_finetuned", stop)
    assert isinstance(run("--then-each", "1").exception, RuntimeError)
    monkeypatch.setattr(multitask_module, "save_finetuned", lambda *words: [kept.append("again"), save(*words)][1])
    result = run("--then-each", "1")
    assert result.exit_code == 0, result.output
    assert kept == ["mood", "same", "again"]
    assert "going on from step" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "0"], "positive number for --epochs"),
        (["--max-length", "64"], "the model has 32 positions only"),
    ],
)
def test_settings_that_cannot_work_are_refused(words, said):
    error = run(*words).exception
    assert isinstance(error, InputError)
    assert said in str(error)
    assert not Path("out").exists()


def test_another_order_needs_another_folder():
    assert run().exit_code == 0
    error = run("--order", "alternating").exception
    assert isinstance(error, InputError)
    assert "out holds another run: order was" in str(error)


def test_a_wrong_file_of_tasks_leaves_no_folder():
    Path("tasks.toml").write_text(TASKS + "rows = 3\n")
    error = run().exception
    assert isinstance(error, InputError)
    assert "there is no key 'rows'" in str(error)
    assert not Path("out").exists()


def test_the_score_to_compare_by_can_be_named():
    Path("tasks.toml").write_text(TASKS + 'metric = "matthews"\n')
    result = run()
    assert "Matthews correlation" in result.output
    assert read_task(Path("out/same"))["metric"] == "matthews"
    Path("tasks.toml").write_text(TASKS + 'metric = "wit"\n')
    error = run("--out", "other").exception
    assert isinstance(error, InputError)
    assert "Task 'same': there is no score 'wit'; known are accuracy" in str(error)
    assert not Path("other").exists()


def test_remarks_name_the_task():
    assert format_remark({"kind": "step", "step": 3, "loss": {"mood": 0.5}}) == "mood 0.500"
    assert format_remark({"kind": "eval", "step": 3, "loss": {"mood": 0.5, "same": 0.7}}) == "dev: mean loss 0.600"
    assert format_remark({"kind": "start", "step": 3}) == ""
