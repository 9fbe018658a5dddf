"""Law 8, Resume: a training that was stopped and goes on ends with the same bits as one that was not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from law_nets import ALONE, fast, run_of, trained_members, training, two_tasks

from unmask.config.optim import LAMB, AdamW, Muon, StableAdamW
from unmask.tasks.recipe import Recipe
from unmask.train.loop import train
from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, list_checkpoints, read_state
from unmask.train.rundir.run_writer import RECORD, LogLine, read_record

STEPS = 20
CHECKPOINTS = {"num_evals": 10, "keep_checkpoints": 3}
"""A checkpoint after every second step."""


def halves(recipe: Recipe) -> Recipe:
    """With dropout, and stages of equal parts, so that the middle of the run of most is a change of stage."""
    stages = tuple(replace(stage, fraction=1 / len(recipe.stages)) for stage in recipe.stages)
    trunk = recipe.network.with_dropout(0.1)
    return fast(replace(recipe, stages=stages, network=trunk), 1e-3)


MEMBERS = [halves(recipe) for recipe in (*trained_members(), two_tasks())]
TWO_STAGES = next(recipe for recipe in MEMBERS if len(recipe.stages) == 2)


class Stopped(Exception):
    """As if the process had ended here."""


class StopAt:
    """Ends a training when the line of a step has been written, and what comes after it has not."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, line: LogLine) -> None:
        if line["kind"] == "step" and line["step"] == self.step:
            raise Stopped


def go(recipe: Recipe, folder: Path, until: int = STEPS, max_in_flight: int = 0, cuda_graphs: bool = False) -> None:
    """Train, or go on training, with a learner that knows nothing of what was before."""
    listeners = [StopAt(until)] if until < STEPS else []
    train(
        training(recipe, STEPS),
        run_of(**CHECKPOINTS, max_in_flight=max_in_flight, cuda_graphs=cuda_graphs),
        ALONE,
        folder,
        listeners,
    )


def stop(recipe: Recipe, folder: Path, at: int, max_in_flight: int = 0, cuda_graphs: bool = False) -> None:
    with pytest.raises(Stopped):
        go(recipe, folder, at, max_in_flight, cuda_graphs)


def end(folder: Path) -> dict[str, bytes]:
    """The weights and the memory of the optimizer, byte by byte."""
    last = list_checkpoints(folder / "checkpoints")[-1]
    assert last.name == f"step-{STEPS:09d}"
    return {name: (last / name).read_bytes() for name in (MODEL, OPTIMIZER)}


def told(folder: Path) -> list[dict[str, Any]]:
    """The record without what the clock says, and without the starts."""
    clocks = ("seconds", "tokens_per_second", "data_wait_seconds")
    lines = (line for line in read_record(folder / RECORD) if line["kind"] != "start")
    return [{name: value for name, value in line.items() if name not in clocks} for line in lines]


@pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
def test_stopped_and_resumed_is_bit_for_bit_undisturbed(recipe: Recipe, tmp_path: Path) -> None:
    go(recipe, tmp_path / "straight")
    for step in (1, 9, 10, 11, 15):  # before the first checkpoint, and on all sides of the change of stage
        stop(recipe, tmp_path / "stopped", step)
    go(recipe, tmp_path / "stopped")
    assert end(tmp_path / "stopped") == end(tmp_path / "straight")
    assert told(tmp_path / "stopped") == told(tmp_path / "straight")
    steps = [line["step"] for line in told(tmp_path / "stopped") if line["kind"] == "step"]
    assert steps == list(range(1, STEPS + 1))
    starts = [line["step"] for line in read_record(tmp_path / "stopped" / RECORD) if line["kind"] == "start"]
    assert starts == [0, 8, 8, 10, 14]  # one for every start that led on; the first was undone


@pytest.mark.parametrize(
    "optimizer", [AdamW(1e-3), LAMB(1e-3), StableAdamW(1e-3), Muon(1e-3, AdamW(1e-3))], ids=lambda o: type(o).__name__
)
def test_every_optimizer_goes_on_across_a_change_of_stage(
    optimizer: AdamW | LAMB | StableAdamW | Muon, tmp_path: Path
) -> None:
    recipe = replace(TWO_STAGES, optim=replace(TWO_STAGES.optim, optimizer=optimizer))
    go(recipe, tmp_path / "straight")
    stop(recipe, tmp_path / "stopped", 10)
    go(recipe, tmp_path / "stopped")
    assert end(tmp_path / "stopped") == end(tmp_path / "straight")
    places = [line["length"] for line in told(tmp_path / "stopped") if line["kind"] == "step"]
    assert places == [32] * 10 + [48] * 10


def test_steps_that_wait_in_a_queue_are_done_again(tmp_path: Path) -> None:
    """What was queued when a training stopped is in neither the record nor a checkpoint."""
    go(TWO_STAGES, tmp_path / "straight")
    for step in (1, 9, 10, 11, 15):
        stop(TWO_STAGES, tmp_path / "stopped", step, max_in_flight=3)
    go(TWO_STAGES, tmp_path / "stopped", max_in_flight=2)
    assert end(tmp_path / "stopped") == end(tmp_path / "straight")
    assert told(tmp_path / "stopped") == told(tmp_path / "straight")


@pytest.mark.parametrize(
    "optimizer", [AdamW(1e-3), LAMB(1e-3), Muon(1e-3, AdamW(1e-3))], ids=lambda o: type(o).__name__
)
def test_steps_that_are_recorded_go_on_as_if_never_stopped(optimizer: AdamW | LAMB | Muon, tmp_path: Path) -> None:
    """A resumed run has recorded nothing yet, and rates that lie on the device are those of the schedule again."""
    recipe = replace(TWO_STAGES, optim=replace(TWO_STAGES.optim, optimizer=optimizer))
    go(recipe, tmp_path / "straight", cuda_graphs=True, max_in_flight=2)
    for step in (1, 9, 10, 11, 15):
        stop(recipe, tmp_path / "stopped", step, cuda_graphs=True, max_in_flight=2)
    go(recipe, tmp_path / "stopped", cuda_graphs=True, max_in_flight=2)
    assert end(tmp_path / "stopped") == end(tmp_path / "straight")
    assert told(tmp_path / "stopped") == told(tmp_path / "straight")


def test_an_older_checkpoint_leads_to_the_same_end(tmp_path: Path) -> None:
    go(TWO_STAGES, tmp_path / "straight")
    stop(TWO_STAGES, tmp_path / "older", 13)
    kept = list_checkpoints(tmp_path / "older" / "checkpoints")
    assert [read_state(path).progress.step for path in kept] == [8, 10, 12]
    for path in kept[1:]:
        shutil.rmtree(path)
    go(TWO_STAGES, tmp_path / "older")
    assert end(tmp_path / "older") == end(tmp_path / "straight")
    assert told(tmp_path / "older") == told(tmp_path / "straight")


def test_a_finished_training_that_is_called_again_does_nothing_more(tmp_path: Path) -> None:
    go(TWO_STAGES, tmp_path / "run")
    before, lines = end(tmp_path / "run"), told(tmp_path / "run")
    go(TWO_STAGES, tmp_path / "run")
    assert end(tmp_path / "run") == before
    assert told(tmp_path / "run") == lines
