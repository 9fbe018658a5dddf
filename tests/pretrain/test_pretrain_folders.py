"""The folder of a run: whose it is, what may be in it, what happens to it when the disk fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pretrain_runs import Server, end_of, free_port, litter, prepared, steps_of, wait_for_lines, wait_for_step, words

from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, STATE, list_checkpoints, read_state
from unmask.train.rundir.folder import lock_run
from unmask.train.rundir.run_writer import RECORD, read_record


def content(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in files}


def sentence(said: str) -> str:
    assert "Traceback" not in said
    return said.splitlines()[-1]


def test_what_a_run_leaves_behind(finished: Path, data: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == [
        "checkpoints",
        "finished.json",
        "record.jsonl",
        "run.json",
        "tokenizer.json",
    ]
    run = json.loads((finished / "run.json").read_text())
    assert (run["kind"], run["budget"], run["seed"]) == ("pretrain", {"steps": 12}, 0)
    assert run["recipe"]["network"]["width"] == 32
    assert run["corpus"]["folder"] == str(data)
    assert steps_of(finished) == list(range(1, 13))
    assert json.loads((finished / "finished.json").read_text())["step"] == 12
    kinds = [line["kind"] for line in read_record(finished / RECORD)]
    assert kinds[:3] == ["start", "eval", "samples"]
    assert kinds[-2:] == ["eval", "samples"]


def test_a_finished_run_is_left_alone(server: Server, data: Path, finished: Path) -> None:
    before = content(finished)
    ended = server.run(*words(data, finished))
    assert ended.code == 0
    assert f"{finished} is finished already. To train further: --init-from {finished} and a new --out." in ended.said
    assert content(finished) == before


@pytest.mark.parametrize(
    ("more", "difference"),
    [
        (["--seed", "1"], "seed was 0 and is now 1"),
        (["--steps", "13"], "budget.steps was 12 and is now 13"),
        (["--tokens", "900"], "budget.tokens was nothing and is now 900"),
        (["--batch-size", "9"], "recipe.stages.0.batch_size was 8 and is now 9"),
        (["--lr", "2e-3"], "recipe.optim.optimizer.lr was 0.001 and is now 0.002"),
        (["--heldout-fraction", "0.1"], "held_out was 0.02 and is now 0.1"),
        (["--set", "network.depth=2"], "recipe.network.depth was 1 and is now 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_another_run_is_refused(more: list[str], difference: str, server: Server, data: Path, finished: Path) -> None:
    before = content(finished)
    ended = server.run(*words(data, finished, *more))
    assert ended.code == 2
    assert f"{finished} holds another run: {difference}. To go on with it, start it as it was begun" in ended.said
    assert sentence(ended.said).startswith("unmask: ")
    assert content(finished) == before


def test_another_member_or_another_corpus_is_refused(
    server: Server, data: Path, finished: Path, tmp_path: Path
) -> None:
    ended = server.run(*words(data, finished, member="wwm"))
    assert ended.code == 2
    assert 'holds another run: recipe.name was "bert" and is now "wwm"' in sentence(ended.said)
    other = prepared(server, tmp_path, "\n\n".join(f"第{number}篇文章，不长。" for number in range(40)))
    ended = server.run(*words(other, finished))
    assert ended.code == 2
    assert "holds another run: corpus." in sentence(ended.said)


def test_another_table_of_similar_words_is_another_run(server: Server, data: Path, tmp_path: Path) -> None:
    """It lies beside the shards, and decides what MacBERT shows."""
    corpus, out = Path(shutil.copytree(data, tmp_path / "data")), tmp_path / "run"
    learn = ("similar-words", "--data", corpus, "--dim", 8, "--epochs", 1, "--min-count", 1, "--at-least", -1)
    run = words(corpus, out, member="macbert", steps=2)
    for line in (learn, run, learn, run, (*learn, "--seed", 2)):
        ended = server.run(*line)
        assert ended.code == 0, ended.said
    ended = server.run(*run)
    assert ended.code == 2
    assert f"{out} holds another run: corpus.similar has changed since." in sentence(ended.said)


@pytest.mark.parametrize("kind", ["folder", "file", "below a file"])
def test_out_must_be_free(kind: str, server: Server, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    if kind == "folder":
        out.mkdir()
        (out / "thesis.doc").write_text("years of work")
    else:
        out.write_text("years of work")
    before = content(tmp_path)
    ended = server.run(*words(data, out / "run" if kind == "below a file" else out))
    assert ended.code == 2
    assert str(out) in sentence(ended.said)
    assert sentence(ended.said).startswith("unmask: ")
    assert content(tmp_path) == before


def test_a_run_that_nobody_can_read_is_refused(server: Server, data: Path, finished: Path, tmp_path: Path) -> None:
    out = shutil.copytree(finished, tmp_path / "run")
    (out / "run.json").write_text("{")
    ended = server.run(*words(data, out))
    assert ended.code == 2
    assert f"{out}/run.json cannot be read (" in sentence(ended.said)
    assert "choose a new folder for --out." in sentence(ended.said)


def test_one_process_at_a_time(server: Server, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with lock_run(out):
        ended = server.run(*words(data, out))
        assert ended.code == 2
        assert f"Another process is training in {out} right now." in sentence(ended.said)
    assert not out.exists()
    child = server.start(*words(data, out, "--save-every-minutes", 0, steps=9999))
    wait_for_step(out, 2)
    ended = server.run(*words(data, out, "--save-every-minutes", 0, steps=9999))
    assert ended.code == 2
    assert "Another process is training in" in sentence(ended.said)
    child.kill()
    with lock_run(out):
        assert steps_of(out) == list(range(1, len(steps_of(out)) + 1))


def test_logistics_may_change_and_a_corpus_may_move(server: Server, data: Path, finished: Path, tmp_path: Path) -> None:
    """Stop a run, move the corpus, and go on in another way: what is learned stays the same."""
    out, moved = tmp_path / "run", tmp_path / "elsewhere"
    child = server.start(*words(data, out, "--save-every-minutes", 0))
    wait_for_step(out, 3)
    child.kill()
    shutil.copytree(data, moved)
    ended = server.run(*words(moved, out, "--keep-checkpoints", 5, "--num-evals", 3, "--save-every-minutes", 0.001))
    assert ended.code == 0, ended.said
    assert end_of(out) == end_of(finished)


def begun(server: Server, data: Path, out: Path) -> list[Path]:
    """A run that was killed after some steps, with two checkpoints."""
    child = server.start(*words(data, out, "--save-every-minutes", 0, "--num-evals", 1))
    wait_for_step(out, 4)
    child.kill()
    assert child.wait() < 0
    return list_checkpoints(out / "checkpoints")


@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, STATE])
def test_a_flipped_byte_is_noticed_and_an_older_checkpoint_goes_on(
    name: str, server: Server, data: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    older, last = begun(server, data, out)[-2:]
    raw = bytearray((last / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (last / name).write_bytes(raw)
    line = words(data, out, "--save-every-minutes", 0, "--num-evals", 1)
    ended = server.run(*line)
    assert ended.code == 2
    told = f"The checkpoint {last} is damaged: {name}"
    assert told in sentence(ended.said)
    assert f"Remove that folder and start the same command to go on from {older.name}." in sentence(ended.said)
    shutil.rmtree(last)
    assert server.run(*line).code == 0
    assert end_of(out) == end_of(finished)
    assert steps_of(out) == list(range(1, 13))


def test_a_missing_file_is_damage_too(server: Server, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    found = begun(server, data, out)
    for path in found[:-1]:
        shutil.rmtree(path)
    (found[-1] / OPTIMIZER).unlink()
    ended = server.run(*words(data, out))
    assert ended.code == 2
    assert f"The checkpoint {found[-1]} is damaged: {OPTIMIZER}" in sentence(ended.said)
    assert "Remove that folder and start the same command to begin again." in sentence(ended.said)


@pytest.fixture
def small_disk(mount_disk: Callable[[int], Path]) -> Path:
    """A disk of three megabytes."""
    return mount_disk(3)


@pytest.mark.parametrize("spare", [0, 60, 400, 1100], ids=lambda spare: f"{spare} KB free")
def test_a_full_disk(spare: int, small_disk: Path, server: Server, data: Path, finished: Path) -> None:
    """With no room at all, for a record, for a part of a checkpoint, and for one."""
    out = small_disk / "run"
    (small_disk / "ballast").write_bytes(bytes((3 * 1024 - 8 - spare) * 1024))
    line = words(data, out, "--save-every-minutes", 0, "--num-evals", 1)
    ended = server.run(*line)
    assert ended.code == 2, ended.said
    assert f"The disk under {small_disk}" in sentence(ended.said)
    assert "start the same command again to go on" in sentence(ended.said)
    for path in list_checkpoints(out / "checkpoints"):
        assert read_state(path).progress.step
    (small_disk / "ballast").unlink()
    ended = server.run(*line)
    assert ended.code == 0, ended.said
    assert end_of(out) == end_of(finished)
    assert steps_of(out) == list(range(1, 13))
    assert litter(out) == []


def test_training_goes_on_from_a_run(server: Server, data: Path, finished: Path, tmp_path: Path) -> None:
    """A new run that begins with the weights of another begins where that one ended."""
    out = tmp_path / "further"
    ended = server.run(*words(data, out, "--init-from", finished, "--steps", 4))
    assert ended.code == 0, ended.said
    last = [line for line in read_record(finished / RECORD) if line["kind"] == "eval"][-1]
    first = next(line for line in read_record(out / RECORD) if line["kind"] == "eval")
    assert first["loss"] == last["loss"]
    assert json.loads((out / "run.json").read_text())["from"] == str(finished)


def test_two_processes_through_torchrun(data: Path, finished: Path, tmp_path: Path) -> None:
    """The line that the help shows. Dropout is another one, so only the first trial is to the digit."""
    out = tmp_path / "two"
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    ended = subprocess.run(
        [*launch, "-m", "unmask", *words(data, out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("parameters") == 1, "one process speaks for both"
    alone, shared = (list(read_record(folder / RECORD)) for folder in (finished, out))
    assert shared[0]["processes"] == 2
    assert [(line["kind"], line["step"]) for line in alone] == [(line["kind"], line["step"]) for line in shared]
    assert [line["tokens"] for line in alone[3:] if "tokens" in line] == [
        line["tokens"] for line in shared[3:] if "tokens" in line
    ]
    assert shared[1]["loss"] == pytest.approx(alone[1]["loss"], rel=1e-5)
    assert shared[-2]["loss"] == pytest.approx(alone[-2]["loss"], rel=0.02)
    assert litter(out) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks Linux for the processes of torchrun")
def test_two_processes_stop_together(data: Path, tmp_path: Path) -> None:
    """Ctrl-C for the one that saves nothing: the other has saved before either leaves."""
    out = tmp_path / "two"
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    started = subprocess.Popen(
        [*launch, "-m", "unmask", *words(data, out, "--num-evals", 1, steps=99_999)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    wait_for_lines(out, 3)
    ranks = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert "the same command goes on" in said
    assert steps_of(out)[-1] == read_state(list_checkpoints(out / "checkpoints")[-1]).progress.step
    assert litter(out) == []
