"""The command: two starts, heights that are exact at both ends, going on; and a sentence for what cannot work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from safetensors.torch import load_file
from test_cli_tune import BAD, GOOD, lines, network
from typer.testing import CliRunner

from unmask.cli.landscape import landscape
from unmask.core.errors import InputError
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.task_data import load_task_data
from unmask.lab.landscape.trajectories import TrackedFineTune
from unmask.loading.open_model import open_model
from unmask.train.evaluate import evaluate
from unmask.train.run_config import DistContext, RunConfig

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(landscape)
RUN = RunConfig(device=torch.device("cpu"))


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    network(Path("net"))
    lines("train.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(24)])
    lines("dev.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(50, 58)])
    yield
    torch.set_num_threads(before)


QUICK = ["--lr", "3e-3", "--batch-size", "8", "--points", "3", "--rows", "99", "--map-rows", "99", "--device", "cpu"]


def run(*words: str, out: str = "out"):
    given = [
        "net",
        "--train-file",
        "train.jsonl",
        "--dev-file",
        "dev.jsonl",
        "--out",
        out,
        *QUICK,
        "--grid",
        "4",
        *words,
    ]
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, given)


def told(out: str = "out"):
    return json.loads(Path(out, "landscape.json").read_text(encoding="utf-8"))


def written(pattern: str) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in Path("out").glob(pattern)}


def test_heights_at_both_ends_are_the_losses_of_an_ordinary_tuning():
    result = run("--epochs", "4")
    assert result.exit_code == 0, result.output
    said = told()
    net = open_model(Path("net"))
    job = load_task_data(Path("train.jsonl"), Path("dev.jsonl"), seed=0)
    for side, start in (("pretrained", StartFrom.PRETRAINED), ("scratch", StartFrom.SCRATCH)):
        how = FineTuneSettings(epochs=4, lr=3e-3, batch_size=8, max_length=32, start=start)
        tuning = FineTune(job, net.model, net.tokenizer, how, net.name)
        course = tuning.encode()
        rows = (course._step_batch(course.train.take(torch.arange(24).numpy())),)
        begin = build_model(net.model, (course.objective,), 0, start)
        tuned = tuning.train(course, RUN, DistContext(0, 1, RUN.device), Path(f"tuned-{side}"))
        height = {
            (round(a, 6), round(b, 6)): one
            for b, row in zip(said[side]["map"]["beta"], said[side]["map"]["height"], strict=True)
            for a, one in zip(said[side]["map"]["alpha"], row, strict=True)
        }
        name = course.objective.name
        for learner, place in ((begin, (0, 0)), (tuned.learner, (1, 0))):
            aim = evaluate(learner, rows, RUN, DistContext(0, 1, RUN.device)).loss[name]
            dev = evaluate(learner, course.eval_batches(), RUN, DistContext(0, 1, RUN.device))
            assert height[place]["loss"] == pytest.approx(aim, rel=1e-6)
            assert height[place]["dev_error"] == pytest.approx(1 - dev.accuracy[name])
            ridge = said[side]["line"]
            assert ridge["height"][ridge["alpha"].index(place[0])] == height[place]
        assert said[side]["training"]["evals"][0] == height[0, 0]
        assert said[side]["training"]["evals"][-1] == height[1, 0]
        assert said[side]["map"]["trajectory"][0] == [0, 0]
        assert said[side]["map"]["trajectory"][-1] == pytest.approx([1, 0], abs=1e-5)
    assert said["pretrained"]["line"] != said["scratch"]["line"]


def test_the_table_fits_a_terminal_and_the_page_is_there():
    result = run("--epochs", "2", "--seed", "1", "--span", "-0.5,2.5")
    for word in ("pre-trained", "from scratch", "loss at the end", "width of the basin", "one run of each"):
        assert word in result.output
    table = [line for line in result.output.splitlines() if line.startswith(("loss at", "width", "rise", "distance"))]
    assert len(table) >= 6
    assert all(len(line) <= 80 for line in table)
    assert "landscape.html" in result.output
    assert told()["pretrained"]["line"]["alpha"][0] == -0.5
    assert Path("out/landscape.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_closer_look_uses_the_same_runs_and_what_was_measured():
    run("--epochs", "2")
    weights, first = written("runs/*/weights/*"), told()
    assert len(weights) == 2 * (4 + 2)  # a start and three points; of the second run its start and its end
    heights = Path("out/heights/pretrained/99.jsonl")
    marked = heights.read_text(encoding="utf-8").replace('"point": "2 0", "loss": ', '"point": "2 0", "loss": 1234')
    heights.write_text(marked[:-9], encoding="utf-8")  # as a kill leaves it; and one height to be known again
    again = run("--epochs", "2", "--grid", "7")
    assert again.exit_code == 0, again.output
    assert written("runs/*/weights/*") == weights
    found = [json.loads(line) for line in heights.read_text(encoding="utf-8").splitlines()]
    assert len({line["point"] for line in found}) == len(found)
    assert told()["pretrained"]["training"] == first["pretrained"]["training"]
    assert len(told()["pretrained"]["map"]["alpha"]) == 7
    assert told()["pretrained"]["line"]["height"][-1]["loss"] > 1000
    random = run("--epochs", "2", "--directions", "random")
    assert random.exit_code == 0, random.output
    assert told()["pretrained"]["map"]["trajectory"] == []
    assert told()["pretrained"]["map"]["directions"] == "random"
    assert told()["pretrained"]["map"]["height"] != first["pretrained"]["map"]["height"]
    other = run("--epochs", "3")
    assert isinstance(other.exception, InputError)
    assert "settings.epochs was 2.0 and is now 3.0" in str(other.exception)


def test_a_second_file_that_asks_something_else_moves_the_trunk_alone():
    rows = [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "abc"[i % 3]} for i in range(24)]
    lines("other.jsonl", rows)
    result = run("--epochs", "1", "--second", "other.jsonl")
    assert result.exit_code == 0, result.output
    assert all(abs(told()[side]["map"]["second"][1]) > 0 for side in ("pretrained", "scratch"))
    for side in ("pretrained", "scratch"):
        first, second = (
            load_file(f"out/runs/{side}-{run}/weights/step-000000000.safetensors") for run in ("first", "second")
        )
        trunk = [name for name in first if name.startswith("trunk.")]
        assert all(torch.equal(first[name], second[name]) for name in trunk)
        assert any(first[name].shape != second[name].shape for name in first if name in second)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--span", "0.5,2"], "from below 0"),
        (["--span", "wide"], "--span needs two numbers"),
        (["--grid", "2"], "--grid of at least 3"),
        (["--second", "0"], "another seed than --seed 0"),
        (["--second", "nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["--task-type", "guess"], "There is no task type 'guess'"),
        (["--lr", "-1"], "positive number for --lr"),
    ],
)
def test_what_cannot_work_is_a_sentence_and_leaves_nothing(words, sentence):
    result = run(*words)
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)
    assert not Path("out").exists()


def test_a_stopped_run_goes_on_to_the_same_weights():
    net = open_model(Path("net"))
    job = load_task_data(Path("train.jsonl"), Path("dev.jsonl"), seed=0)
    how = FineTuneSettings(epochs=4, lr=3e-3, batch_size=8, max_length=32)
    tuning = FineTune(job, net.model, net.tokenizer, how, net.name)
    course, run = tuning.encode(), RunConfig(device=torch.device("cpu"), keep_checkpoints=1, num_evals=4)
    whole, torn = (TrackedFineTune(tuning, course, StartFrom.PRETRAINED, Path(name)) for name in ("whole", "torn"))

    def stop(line):
        if line["kind"] == "step" and line["step"] == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        torn.train(torn.build_model(), run, [stop])
    assert not torn.is_finished
    found, aim = torn.train(torn.build_model(), run), whole.train(whole.build_model(), run)
    assert found.steps == aim.steps == [0, 3, 6, 9, 12]
    for number in range(5):
        assert all(torch.equal(aim.weights(number)[name], one) for name, one in found.weights(number).items())
    assert not Path("torn/checkpoints").exists()
    assert torn.train(torn.build_model(), run, [lambda line: pytest.fail("was trained twice")]).steps == aim.steps
