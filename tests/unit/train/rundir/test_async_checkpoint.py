"""Checkpoints written in the background: what was copied is what is written, and failures are told."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from unmask.train.rundir import run_writer as made
from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, BestEval, RunState, list_checkpoints, read_tensors
from unmask.train.rundir.run_writer import AsyncCheckpointWriter
from unmask.train.schedule import RunProgress


def state(step):
    return RunState(RunProgress(step=step), BestEval(1.0, step))


def test_what_moves_after_it_was_copied_is_written_as_it_was(tmp_path, monkeypatch):
    moved = threading.Event()
    save = made.save_checkpoint

    def late(*args):
        assert moved.wait(10)
        return save(*args)

    monkeypatch.setattr(made, "save_checkpoint", late)
    weight, memory = torch.ones(3), torch.zeros(2)
    with AsyncCheckpointWriter.for_folder(tmp_path, keep_checkpoints=2) as writer:
        writer.write({"a": weight}, {"m/a": memory}, state(1))
        assert not list_checkpoints(tmp_path)
        weight.fill_(7)
        memory.fill_(7)
        moved.set()
    (found,) = list_checkpoints(tmp_path)
    assert torch.equal(read_tensors(found, MODEL)["a"], torch.ones(3))
    assert torch.equal(read_tensors(found, OPTIMIZER)["m/a"], torch.zeros(2))


def test_each_checkpoint_has_its_own_numbers_and_old_ones_go(tmp_path):
    weight = torch.zeros(3)
    with AsyncCheckpointWriter.for_folder(tmp_path, keep_checkpoints=2) as writer:
        for step in range(1, 5):
            weight.fill_(step)
            writer.write({"a": weight}, {}, state(step))
    kept = list_checkpoints(tmp_path)
    assert [path.name for path in kept] == ["step-000000003", "step-000000004"]
    assert [read_tensors(path, MODEL)["a"][0].item() for path in kept] == [3, 4]


def test_a_failure_is_told_with_the_next_one(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(made, "save_checkpoint", full)
    with AsyncCheckpointWriter.for_folder(tmp_path, keep_checkpoints=2) as writer:
        writer.write({"a": torch.ones(1)}, {}, state(1))
        with pytest.raises(OSError, match="no space"):
            writer.write({"a": torch.ones(1)}, {}, state(2))


def test_a_failure_is_told_at_the_end(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(made, "save_checkpoint", full)
    with (
        pytest.raises(OSError, match="no space"),
        AsyncCheckpointWriter.for_folder(tmp_path, keep_checkpoints=2) as writer,
    ):
        writer.write({"a": torch.ones(1)}, {}, state(1))


def test_a_failure_is_told_when_the_run_is_stopped(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space")

    def stopped():
        with AsyncCheckpointWriter.for_folder(tmp_path, keep_checkpoints=2) as writer:
            writer.write({"a": torch.ones(1)}, {}, state(1))
            raise KeyboardInterrupt

    monkeypatch.setattr(made, "save_checkpoint", full)
    with pytest.raises(OSError, match="no space"):
        stopped()


def test_a_failure_shows_before_the_next_one(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(made, "save_checkpoint", full)
    writer = AsyncCheckpointWriter(tmp_path, 2, ThreadPoolExecutor(1))
    assert not writer.failed
    writer.write({"a": torch.ones(1)}, {}, state(1))
    writer.executor.shutdown()
    assert writer.failed
