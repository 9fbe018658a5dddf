"""What cannot work is one sentence, exit code 2 and no folder: before anything is planned, drawn or written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from pretrain_runs import Ended, Server, free_port, prepared, words

BROKEN = """
from dataclasses import replace
from unmask.recipes.bert import bert

def shares():
    recipe = bert()
    return replace(recipe, stages=recipe.stages[:1])
"""


def refused(ended: Ended, out: Path, *sentences: str) -> None:
    """One sentence for a person, and nothing is left behind."""
    lines = [line for line in ended.said.splitlines() if line]
    assert ended.code == 2, ended.said
    assert lines[-1].startswith("unmask: "), ended.said
    assert "Traceback" not in ended.said
    for sentence in sentences:
        assert sentence in lines[-1]
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--set", "stages.0.lenght=64"], "Recipe.stages.0 has no 'lenght'; it has tasks, max_length, batch_size"),
        (["--set", "stages.0.max_length=long"], "Recipe.stages.0.max_length needs a whole number, found 'long'"),
        (["--set", "stages.0.max_length"], "--set needs PATH=VALUE, such as stages.0.max_length=256"),
        (["--set", "network.heads=3"], "a width that its heads divide; found depth 1, width 32, 3 heads"),
        (["--set", "stages.0.fraction=0.7"], "the stages' shares of the steps must sum to 1, found 0.7, 0.5"),
        (["--set", "stages.0.max_length=4"], "A stage needs rows of at least 8 tokens"),
        (["--set", "network.dropout=1.5"], "Dropout lies between 0 and 1"),
        (["--lr", "0"], "AdamW needs a positive learning rate; found 0.0"),
        (["--lr", "nan"], "a finite number"),
        (["--size", "huge"], "bert has no size 'huge'. It has: tiny, mini, small"),
        (
            ["--steps", "9", "--tokens", "900"],
            "A run needs one budget: --steps, --tokens, --hours or --flops; found 9 steps and",
        ),
        (["--hours", "0"], "A budget needs a positive number of hours, found 0.0"),
        (["--device", "gpu"], "The device 'gpu' cannot be used here"),
        (["--device", "meta"], "The device 'meta' cannot be used here"),
        (
            ["--init-from", "nowhere"],
            "nowhere: there is no such folder, and nothing is downloaded. Needed is the folder of a run",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wish_that_cannot_work(more: list[str], sentence: str, server: Server, data: Path, tmp_path: Path) -> None:
    refused(server.run(*words(data, tmp_path / "run", *more)), tmp_path / "run", sentence)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(server: Server, data: Path, tmp_path: Path) -> None:
    ended = server.run(*words(data, tmp_path / "run", "--device", "cuda"))
    refused(ended, tmp_path / "run", "The device 'cuda' cannot be used here", "Take --device cpu, or auto.")


def test_no_budget(server: Server, data: Path, tmp_path: Path) -> None:
    ended = server.run("pretrain", "bert", "--data", data, "--out", tmp_path / "run")
    refused(
        ended, tmp_path / "run", "A run needs one budget: --steps, --tokens, --hours or --flops; found none of them."
    )


@pytest.mark.parametrize(
    "more", [["--steps", "many"], ["--steps", "0"], ["--heldout-fraction", "0.9"], ["--precision", "int"]]
)
def test_a_value_of_the_wrong_kind(more: list[str], server: Server, data: Path, tmp_path: Path) -> None:
    ended = server.run(*words(data, tmp_path / "run", *more))
    assert ended.code == 2
    assert more[0] in ended.said
    assert "Traceback" not in ended.said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ("nobody", "There is no member 'nobody'"),
        ("macbert", "Task 'correct' shows similar words, but {data} has no table of them"),
        ("absent.py:mine", "absent.py: there is no such file"),
        ("broken.py:shares", "broken.py:7, in shares: bert: the stages' shares of the steps must sum to 1, found 0.9."),
    ],
)
def test_a_member_that_cannot_be_trained_here(
    member: str, sentence: str, server: Server, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    line = ("pretrain", member, "--data", data, "--out", "run", "--steps", 5, "--set", "network.depth=1")
    refused(server.run(*line, folder=tmp_path), tmp_path / "run", sentence.format(data=data))


def test_a_folder_that_is_no_corpus(server: Server, tmp_path: Path, finished: Path) -> None:
    for folder in (tmp_path / "absent", tmp_path, finished):
        ended = server.run(*words(folder, tmp_path / "run"))
        refused(ended, tmp_path / "run", f"{folder} holds no prepared corpus: there is no manifest.json.")


def test_a_corpus_that_changed_under_the_manifest(server: Server, data: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(data, tmp_path / "data")
    (copy / "shards" / "00000" / "ids.npy").write_bytes(b"nothing")
    refused(server.run(*words(copy, tmp_path / "run")), tmp_path / "run", "is damaged", "Prepare the corpus again.")


def test_layers_that_were_not_prepared(server: Server, data: Path, tmp_path: Path) -> None:
    change = ("--set", "stages.0.tasks.0.corruption.select.layer=phrase")
    ended = server.run(*words(data, tmp_path / "run", *change, member="wwm"))
    refused(ended, tmp_path / "run", "reads phrase, sentence, word units, but the corpus in", "--units phrase")


@pytest.mark.parametrize(
    ("text", "member", "sentence"),
    [
        ("只有一篇文章。它有两句话。", "bert", "has 1. Add documents"),
        ("甲。\n\n乙。\n\n丙。", "roberta", "has 3. Add documents"),
        ("甲\n\n乙\n\n丙\n\n丁\n\n戊", "albert", "holds special tokens and no text, so there is nothing to learn from"),
    ],
)
def test_too_little_text(text: str, member: str, sentence: str, server: Server, tmp_path: Path) -> None:
    small = prepared(server, tmp_path, text, "--min-chars", 1)
    refused(server.run(*words(small, tmp_path / "run", member=member)), tmp_path / "run", sentence)


def test_text_that_gives_no_row(server: Server, tmp_path: Path) -> None:
    small = prepared(server, tmp_path, "甲\n\n乙\n\n丙\n\n丁\n\n戊", "--min-chars", 1, "--vocabulary", "byte-bpe")
    ended = server.run(*words(small, tmp_path / "run", member="albert"))
    refused(ended, tmp_path / "run", "gives task 'cloze' no row at all. Prepare more text")


def test_a_start_with_another_vocabulary(server: Server, finished: Path, tmp_path: Path) -> None:
    text = "\n\n".join(f"第{number}篇。完全不同的一些文字，词表也不同。" for number in range(40))
    other = prepared(server, tmp_path, text)
    ended = server.run(*words(other, tmp_path / "run", "--init-from", finished))
    sentence = f"The corpus was not prepared for the network in {finished}, so its ids would be misread."
    refused(ended, tmp_path / "run", sentence, f"--tokenizer {finished}/tokenizer.json")


def test_a_start_that_is_a_corpus_or_has_fewer_positions(
    server: Server, data: Path, finished: Path, tmp_path: Path
) -> None:
    refused(server.run(*words(data, tmp_path / "run", "--init-from", data)), tmp_path / "run", "is a prepared corpus")
    longer = ("--init-from", finished, "--set", "stages.1.max_length=64")
    ended = server.run(*words(data, tmp_path / "run", *longer))
    refused(ended, tmp_path / "run", "has rows of 64 tokens, but the network in", "has 48 positions")


def test_a_start_with_fewer_segments_than_the_rows_have(server: Server, data: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    assert server.run(*words(data, alone, "--steps", "1", member="roberta")).code == 0
    ended = server.run(*words(data, tmp_path / "run", "--init-from", alone, "--set", "stages.1.max_length=32"))
    refused(ended, tmp_path / "run", "has rows of 2 segments, but the network in", "knows 1.")


def test_a_batch_smaller_than_the_number_of_processes(server: Server, data: Path, tmp_path: Path) -> None:
    """Both processes are started as torchrun would; both refuse, and none waits for the other."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    line = words(data, tmp_path / "run", "--batch-size", 1)
    children = [server.start(*line, **shared, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in (0, 1)]
    for child in children:
        refused(Ended(child.wait(), child.said()), tmp_path / "run", "2 processes share the rows of a step")


def test_what_is_not_finite_stops_the_run_and_is_kept(server: Server, data: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from unmask.train.rundir.checkpoint import MODEL, read_state, read_tensors

    out = tmp_path / "run"
    line = words(data, out, "--lr", "1e30", "--num-evals", 1)
    ended = server.run(*line)
    assert ended.code == 2
    assert "Traceback" not in ended.said
    assert "The loss or its gradient is not finite in step" in ended.said.splitlines()[-1]
    (kept,) = out.glob("not-finite-*")
    assert f"the state before it are in {kept}" in ended.said
    step = int(kept.name.rpartition("-")[2])
    assert read_state(kept).progress.step == step - 1
    assert all(bool(tensor.isfinite().all()) for tensor in read_tensors(kept, MODEL).values())
    batch = load_file(kept / "batch-0.safetensors")
    assert len(batch["rows"]) == 9
    assert batch["rows"][-1] == len(batch["ids"])
    assert server.run(*line).said.splitlines()[-1] == ended.said.splitlines()[-1]  # again, at the same step


def test_weights_that_are_not_finite_do_not_end_as_a_finished_run(server: Server, data: Path, tmp_path: Path) -> None:
    """The last step breaks the weights, so no later step can notice; the trial does."""
    out = tmp_path / "run"
    ended = server.run(*words(data, out, "--lr", "1e38", "--steps", 2, "--set", "optim.schedule.warmup.fraction=0"))
    assert ended.code == 2
    assert "not finite" in ended.said.splitlines()[-1]
    assert not (out / "finished.json").exists()
    assert "NaN" not in (out / "record.jsonl").read_text()


def test_a_start_with_broken_weights(server: Server, data: Path, finished: Path, tmp_path: Path) -> None:
    from unmask.train.rundir.checkpoint import (
        MODEL,
        OPTIMIZER,
        list_checkpoints,
        read_state,
        read_tensors,
        remove_atomically,
        save_checkpoint,
    )

    source = shutil.copytree(finished, tmp_path / "source")
    last = list_checkpoints(source / "checkpoints")[-1]
    model, memory, state = read_tensors(last, MODEL), read_tensors(last, OPTIMIZER), read_state(last)
    model["network.embed.norm.weight"][3] = float("nan")
    remove_atomically(last)
    save_checkpoint(source / "checkpoints", model, memory, state)
    ended = server.run(*words(data, tmp_path / "run", "--init-from", source))
    assert ended.code == 2
    assert "Traceback" not in ended.said
    assert "not finite" in ended.said.splitlines()[-1]


def test_a_dry_run_writes_nothing(server: Server, data: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    ended = server.run(*words(data, tmp_path / "run", "--dry-run"))
    assert ended.code == 0, ended.said
    told = dict(line.split(maxsplit=1) for line in ended.said.splitlines())
    assert told["steps"].strip() == "12"
    assert told["device"].strip() == "cpu, float32"
    assert not (tmp_path / "run").exists()
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before
    assert json.loads((data / "manifest.json").read_text())
