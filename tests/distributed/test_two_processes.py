"""Law 7 between processes: two of them learn what one learns, from the same rows and to the same end."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from shared_steps import CPU, GRADIENTS, STEPS, do_all, subjects

from unmask.train.run_config import DistContext
from unmask.train.rundir.checkpoint import MODEL, list_checkpoints, read_tensors
from unmask.train.rundir.run_writer import RECORD, read_record

SAME = 1e-5
"""Of a loss, summed in another order: float32 keeps seven digits."""
GRADIENT = 1e-4
"""Of the largest number in a gradient: its terms have both signs, and what they cancel takes digits with it."""
DONE = "done"
every_subject = pytest.mark.parametrize("name", [recipe.name for recipe in subjects()])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once, by whichever of the processes that share these tests needs it first."""
    base = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / name / DONE).exists():
            make(base / name)
            (base / name / DONE).touch()
    return base / name


def do_with_two(folder: Path) -> None:
    """Start two processes, as `torchrun` would."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    script = Path(__file__).parent.parent / "helpers" / "shared_steps.py"
    started = [
        subprocess.Popen(
            [sys.executable, script, folder],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=240)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], "\n".join(said)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave behind."""
    return once(tmp_path_factory, "two-processes", do_with_two)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of the same."""
    return once(tmp_path_factory, "one-process", lambda folder: do_all(folder, DistContext(0, 1, CPU)))


@every_subject
def test_loss_and_gradients_are_those_of_one_process(name: str, one: Path, two: Path) -> None:
    alone, shared = load_file(one / name / GRADIENTS), load_file(two / name / GRADIENTS)
    assert alone.keys() == shared.keys()
    for key, gradient in alone.items():
        assert (gradient - shared[key]).abs().max() <= GRADIENT * gradient.abs().max(), key


@every_subject
def test_the_curve_is_that_of_one_process(name: str, one: Path, two: Path) -> None:
    alone, shared = (list(read_record(folder / name / RECORD)) for folder in (one, two))
    assert [(line["kind"], line["step"]) for line in alone] == [(line["kind"], line["step"]) for line in shared]
    assert [line["step"] for line in shared if line["kind"] == "step"] == list(range(1, STEPS + 1))
    assert (alone[0]["processes"], shared[0]["processes"]) == (1, 2)
    for mine, theirs in zip(alone[1:], shared[1:], strict=True):
        assert theirs["loss"] == pytest.approx(mine["loss"], rel=SAME)
        assert theirs["count"] == mine["count"]
        assert theirs["tokens"] == mine["tokens"]
        assert {key: theirs.get(key) for key in ("padding_fraction", "masked_fraction", "task", "lr")} == {
            key: mine.get(key) for key in ("padding_fraction", "masked_fraction", "task", "lr")
        }


@every_subject
def test_the_weights_end_where_those_of_one_process_end(name: str, one: Path, two: Path) -> None:
    alone, shared = (read_tensors(list_checkpoints(home / name / "checkpoints")[-1], MODEL) for home in (one, two))
    for key, weight in alone.items():
        assert torch.allclose(weight, shared[key], rtol=1e-3, atol=1e-5), key
