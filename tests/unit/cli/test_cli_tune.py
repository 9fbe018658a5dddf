"""The command: from a folder and a task file to scores; and a sentence for everything that cannot work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
import typer
from folder_net import BAD, GOOD, lines, network
from typer.testing import CliRunner

from unmask.api.finetune import ProgressRemark
from unmask.cli.finetune import finetune
from unmask.cli.landscape import landscape
from unmask.cli.multitask import multitask
from unmask.cli.predict import predict
from unmask.config.model_type import ModelType
from unmask.core.errors import CorpusError, InputError, RecipeError, UserError
from unmask.core.io.folder_lock import folder_lock
from unmask.finetuning.artifact import read_task
from unmask.finetuning.export.hf import open_finetuned
from unmask.finetuning.task_data import read_examples

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(finetune)


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """A folder with a small network and two task files; one thread, because two are slower for so little."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    network(Path("net"))
    lines("train.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(40)])
    lines("dev.jsonl", [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": "好坏"[i % 2]} for i in range(50, 60)])
    yield
    torch.set_num_threads(before)


def run(*words: str):
    quick = ["--lr", "3e-3", "--batch-size", "8", "--device", "cpu", "--out", "out"]
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["net", *quick, *words])


def test_scores_answers_and_a_network_come_out():
    result = run("--train-file", "train.jsonl", "--dev-file", "dev.jsonl", "--epochs", "12")
    assert result.exit_code == 0, result.output
    for said in (
        "text from 'text', label from 'label'",
        "accuracy",
        "F1 of 好",
        "accuracy 0.5000.",
        "out/predictions.jsonl",
    ):
        assert said in result.output
    told = read_task(Path("out"))
    assert told["task"]["labels"] == ["坏", "好"]
    assert told["source"] == "net"
    assert told["metrics"]["accuracy"] > 0.8
    lines = Path("out/predictions.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in lines]
    right = sum(answer["prediction"] == answer["label"] for answer in answers)
    assert right / 10 == told["metrics"]["accuracy"]
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "finished.json",
        "model.safetensors",
        "predictions.jsonl",
        "record.jsonl",
        "run.json",
        "task.json",
        "tokenizer.json",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--crf",), "--crf has no effect with --task-type classification; it is for tagging."),
        (("--num-beams", "2"), "--num-beams has no effect with --task-type classification; it is for generation."),
        (("--adapter-width", "8"), "--adapter-width has no effect with --method full; it is for adapter."),
        (("--no-cache-features",), "--cache-features has no effect with --method full; it is for frozen and layers."),
        (("--method", "lora", "--lora-rank", "17"), "An update of rank 17 is larger"),
        (("--method", "adapter", "--adapter-width", "65"), "An adapter of width 65 is larger"),
    ],
)
def test_an_option_that_says_nothing_is_refused(words, sentence):
    result = run("--train-file", "train.jsonl", *words)
    assert isinstance(result.exception, UserError)
    assert sentence in str(result.exception)
    assert not Path("out").exists()


def test_adapters_whose_network_was_moved_are_told_where_it_is():
    run("--train-file", "train.jsonl", "--epochs", "0.1", "--method", "adapter", "--adapter-width", "4")
    before = [answer.prediction for answer in answers_of("out")]
    Path("net").rename("elsewhere")
    with pytest.raises(InputError, match=r"base model is not in .*net.*--base-model"):
        open_finetuned(Path("out"))
    assert [answer.prediction for answer in answers_of("out", Path("elsewhere"))] == before
    network(Path("net"), seed=2)
    with pytest.raises(InputError, match="this is another model"):
        open_finetuned(Path("out"))


def answers_of(folder, moved=None):
    tuned = open_finetuned(Path(folder), moved)
    return tuned.predict(read_examples(Path("dev.jsonl"), tuned.task.task_type, tuned.columns))


def test_a_tuned_network_answers_a_new_file_as_it_did_before():
    run("--train-file", "train.jsonl", "--dev-file", "dev.jsonl", "--epochs", "2")
    before = [json.loads(line) for line in Path("out/predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    lines("new.jsonl", [{"text": one["text"]} for one in before])
    predict(Path("out"), Path("new.jsonl"), Path("said.jsonl"), device="cpu")
    again = [json.loads(line) for line in Path("said.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(one["prediction"], one["probability"]) for one in again] == [
        (one["prediction"], one["probability"]) for one in before
    ]
    predict(Path("out"), Path("new.jsonl"), Path("said.tsv"), device="cpu")
    assert Path("said.tsv").read_text(encoding="utf-8").splitlines()[:2] == [
        "index\tprediction",
        f"0\t{before[0]['prediction']}",
    ]
    predict(Path("out"), Path("new.jsonl"), Path("said.json"), device="cpu")
    assert json.loads(Path("said.json").read_text(encoding="utf-8"))["1"] == before[1]["prediction"]
    with pytest.raises(InputError, match="should end with"):
        predict(Path("out"), Path("new.jsonl"), Path("said.xml"), device="cpu")


def test_the_same_command_again_only_tells_and_another_is_refused():
    first = run("--train-file", "train.jsonl", "--epochs", "1")
    assert "4 of its rows (1 text in 10) were split off as dev set" in first.output
    before = Path("out/model.safetensors").stat().st_mtime_ns
    again = run("--train-file", "train.jsonl", "--epochs", "1")
    assert again.exit_code == 0
    assert "out is fine-tuned already." in again.output
    assert "accuracy" in again.output
    assert Path("out/model.safetensors").stat().st_mtime_ns == before
    other = run("--train-file", "train.jsonl", "--epochs", "1", "--seed", "1")
    assert isinstance(other.exception, InputError)
    assert "settings.seed was 0 and is now 1" in str(other.exception)
    assert "--init-from" not in str(other.exception)  # which is an option of pretrain alone


def test_numbers_for_pairs_from_a_table_without_names():
    rows = [f"{GOOD}\t{(GOOD, BAD)[i % 2]}\t{5 - 4 * (i % 2) + i / 100}" for i in range(30)]
    Path("pairs.tsv").write_text("\n".join(rows), encoding="utf-8")
    result = run(
        "--train-file",
        "pairs.tsv",
        "--text-columns",
        "1,2",
        "--label-column",
        "3",
        "--epochs",
        "1",
        "--max-length",
        "16",
    )
    assert result.exit_code == 0, result.output
    assert "Pearson correlation" in result.output
    assert "30 of 30 rows have more than 16 tokens" in " ".join(result.output.split())
    assert read_task(Path("out"))["task_type"] == "regression"


def test_from_scratch_differs_from_the_start_alone():
    run("--train-file", "train.jsonl", "--epochs", "0.1", "--out", "known")
    run("--train-file", "train.jsonl", "--epochs", "0.1", "--out", "drawn", "--from-scratch")
    known, drawn = (open_finetuned(Path(name)).learner.named_weights() for name in ("known", "drawn"))
    assert known.keys() == drawn.keys()
    assert {"heads.judge.row_head.pool.weight", "heads.judge.row_head.classify.bias"} < known.keys()
    assert not torch.equal(known["network.embed.token.weight"], drawn["network.embed.token.weight"])
    assert read_task(Path("drawn"))["settings"]["start"] == "from scratch"


REFUSED = {
    "no file": (["--train-file", "none.jsonl"], "there is no such file"),
    "no field": (["--train-file", "train.jsonl", "--text-columns", "body"], "there is no column 'body'"),
    "missing label": (["--train-file", "missing.jsonl"], "missing.jsonl:2: the label is missing"),
    "unseen label": (
        ["--train-file", "train.jsonl", "--dev-file", "unseen.jsonl"],
        "unseen.jsonl:1: the label '中' does not occur",
    ),
    "too long": (["--train-file", "train.jsonl", "--max-length", "64"], "the model has 32 positions only"),
    "no epochs": (["--train-file", "train.jsonl", "--epochs", "0"], "a positive number for --epochs, found 0.0"),
    "words as numbers": (
        ["--train-file", "train.jsonl", "--task-type", "regression"],
        "train.jsonl:1: the score '好' is no number",
    ),
    "half a character": (["--train-file", "torn.jsonl"], "half of a surrogate pair"),
    "no rate": (["--train-file", "train.jsonl", "--lr", "0"], "a positive number for --lr, found 0.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_a_sentence_and_leaves_no_folder(case):
    lines("missing.jsonl", [{"text": "a", "label": 1}, {"text": "b"}])
    lines("torn.jsonl", [{"text": "a", "label": 1}, {"text": "\ud800", "label": 2}] * 9)
    lines("unseen.jsonl", [{"text": "a", "label": "中"}])
    words, sentence = REFUSED[case]
    result = run(*words)
    assert isinstance(result.exception, UserError), result.output
    assert sentence in str(result.exception)
    assert not Path("out").exists()


def test_a_folder_in_use_or_with_something_else_is_refused():
    with folder_lock(Path("out"), "training in"):
        assert isinstance(run("--train-file", "train.jsonl").exception, CorpusError)
    Path("out").mkdir()
    Path("out/letters.txt").write_text("mine")
    result = run("--train-file", "train.jsonl")
    assert isinstance(result.exception, InputError | RecipeError)
    assert "is not empty" in str(result.exception)
    assert [path.name for path in Path("out").iterdir()] == ["letters.txt"]


def test_a_remark_says_how_it_goes():
    remark = ProgressRemark()
    assert remark({"kind": "start", "step": 0}) == ""
    assert (
        remark({"kind": "eval", "step": 0, "loss": {"judge": 0.7}, "accuracy": {"judge": 0.51}}) == "dev: 51.0% right"
    )
    assert remark({"kind": "step", "step": 1, "loss": {"judge": 0.69}}) == "loss 0.690, dev: 51.0% right"
    assert remark({"kind": "eval", "step": 2, "loss": {"rate": 0.25}, "accuracy": {"rate": 0.0}}) == "dev: loss 0.250"


@pytest.mark.parametrize("command", [multitask, landscape])
def test_the_help_names_all_families_that_are_read(command):
    source = get_type_hints(command, include_extras=True)["source"]
    (argument,) = source.__metadata__
    assert set(ModelType) <= set(re.findall(r"\w+", argument.help.lower()))
