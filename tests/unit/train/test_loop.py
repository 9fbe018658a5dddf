"""The loop by hand: budgets in steps, tokens and hours, what is due when, and what is recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from little_course import ALONE, recipe, run_of, training

import unmask.train.loop
import unmask.train.rundir.run_writer
from unmask.config.optim import AdamW, Linear, Muon, OptimConfig, WarmupFraction, WarmupSteps
from unmask.core.errors import UserError
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, list_checkpoints, read_state, read_tensors
from unmask.train.rundir.run_writer import RECORD, LogLine, read_record
from unmask.train.schedule import Budget, StepBudget, TimeBudget, TokenBudget
from unmask.train.step import AsyncScalars, DeviceBatch, StepRunner

FALL = Linear()


class Clock:
    """A clock that a test winds: a look at it takes a hundredth of a second, and a step half a second."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        self.now += 0.01
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(unmask.train.loop, "time", made)
    monkeypatch.setattr(unmask.train.rundir.run_writer, "time", made)
    take = StepRunner.run

    def slow(worker: StepRunner, loaded: DeviceBatch, counts: Sequence[float], step: int) -> AsyncScalars:
        made.now += 0.5
        return take(worker, loaded, counts, step)

    monkeypatch.setattr(StepRunner, "run", slow)
    return made


def lines(folder: Path, kind: str = "step") -> list[dict[str, Any]]:
    return [line for line in read_record(folder / RECORD) if line["kind"] == kind]


def go(budget: Budget, folder: Path, trials: int = 1, schedule: Linear = FALL, **more: float) -> list[dict[str, Any]]:
    made = recipe()
    made = replace(made, optim=OptimConfig(AdamW(1e-2), schedule))
    train(training(budget, made), run_of(trials, **more), ALONE, folder)
    return lines(folder)


def test_a_budget_in_steps_ends_with_its_last_step(tmp_path: Path) -> None:
    found = go(StepBudget(6), tmp_path, schedule=Linear(WarmupSteps(2)))
    assert [line["step"] for line in found] == [1, 2, 3, 4, 5, 6]
    assert [line["lr"] for line in found] == pytest.approx([0, 0.005, 0.01, 0.0075, 0.005, 0.0025])
    assert [line["progress"] for line in found] == pytest.approx([n / 6 for n in range(1, 7)], abs=1e-6)


def test_a_budget_in_tokens_is_used_up_and_the_rate_falls_with_it(tmp_path: Path) -> None:
    found = go(TokenBudget(400), tmp_path)
    assert found[-2]["tokens"] < 400 <= found[-1]["tokens"]
    before = [0, *(line["tokens"] for line in found[:-1])]
    assert [line["lr"] for line in found] == pytest.approx([0.01 * (1 - tokens / 400) for tokens in before])
    steps = go(StepBudget(100), tmp_path / "steps")[: len(found)]
    assert [line["tokens"] for line in steps] == [line["tokens"] for line in found], "tokens are counted, not guessed"


def test_a_budget_in_hours_ends_when_the_time_is_over(tmp_path: Path, clock: Clock) -> None:
    began = clock.now
    found = go(TimeBudget(20 / 3600), tmp_path, trials=4, schedule=Linear(WarmupFraction(0.25)))
    assert 20 <= clock.now - began <= 20.7
    assert found[-1]["seconds"] >= 20
    rates = [line["lr"] for line in found]
    peak = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.01, rel=0.2)
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] < 0.1 * max(rates), "no step is taken when nothing is left to learn with"
    assert len(lines(tmp_path, "eval")) == 5


def test_time_before_a_resume_counts(tmp_path: Path, clock: Clock) -> None:
    class Stopped(Exception):
        pass

    def stop(line: LogLine) -> None:
        if line["kind"] == "eval" and line["step"] != 0 and float(str(line["seconds"])) > 9:
            raise Stopped

    budget = TimeBudget(20 / 3600)
    with pytest.raises(Stopped):
        train(training(budget), run_of(10), ALONE, tmp_path, [stop])
    saved = read_state(list_checkpoints(tmp_path / "checkpoints")[-1]).progress
    clock.now += 5000  # nobody trained in this time
    train(training(budget), run_of(10), ALONE, tmp_path)
    found = lines(tmp_path)
    assert 7 < saved.seconds < 10
    assert found[-1]["seconds"] < 20.7
    assert [line["step"] for line in found] == list(range(1, len(found) + 1))
    assert all(later["seconds"] > line["seconds"] for line, later in pairwise(found))


def test_trials_are_spread_evenly_and_held_at_both_ends(tmp_path: Path) -> None:
    go(StepBudget(10), tmp_path, trials=4)
    assert [line["step"] for line in lines(tmp_path, "eval")] == [0, 3, 5, 8, 10]
    many = tmp_path / "many"
    go(StepBudget(3), many, trials=50)
    assert [line["step"] for line in lines(many, "eval")] == [0, 1, 2, 3]
    each = tmp_path / "each"  # a hundredth times a hundred is not always a whole number
    go(StepBudget(100), each, trials=100, keep_checkpoints=1)
    assert [line["step"] for line in lines(each, "eval")] == list(range(101))


def test_checkpoints_come_with_trials_and_when_the_last_is_too_old(tmp_path: Path, clock: Clock) -> None:
    found = tmp_path / "rare"
    go(StepBudget(10), found, trials=2, keep_checkpoints=99)
    assert [path.name for path in list_checkpoints(found / "checkpoints")] == ["step-000000005", "step-000000010"]
    late = tmp_path / "late"
    go(StepBudget(10), late, trials=1, keep_checkpoints=99, save_every_minutes=2 / 60)
    assert 3 <= len(list_checkpoints(late / "checkpoints")) <= 9


def test_the_best_checkpoint_outlives_later_ones(tmp_path: Path) -> None:
    """After a few good steps a rate of 3 ruins the network; the best checkpoint is from before."""
    made = replace(recipe(), optim=OptimConfig(AdamW(3.0), Linear(WarmupFraction(0.99))))
    state = train(training(StepBudget(12), made), run_of(12, keep_checkpoints=2), ALONE, tmp_path)
    trials = {line["step"]: sum(line["loss"].values()) for line in lines(tmp_path, "eval")}
    best = min(trials, key=lambda step: trials[step])
    assert state.best.step == best
    assert state.best.loss == pytest.approx(trials[best], abs=1e-5)
    names = [path.name for path in list_checkpoints(tmp_path / "checkpoints")]
    assert names == sorted({*([f"step-{best:09d}"] if best else []), "step-000000011", "step-000000012"})


def test_what_a_step_says_of_itself(tmp_path: Path) -> None:
    found = go(StepBudget(3), tmp_path)[-1]
    assert set(found["loss"]) == set(found["accuracy"]) == set(found["count"]) == {"mlm", "next"}
    assert found["count"]["next"] == 4
    assert found["length"] == 16
    assert 0 <= found["padding_fraction"] < 1
    assert found["masked_fraction"] == pytest.approx(0.15, abs=0.12)
    assert found["grad_norm"] > 0
    assert found["tokens_per_second"] > 0
    assert 0 <= found["data_wait_seconds"] < found["seconds"]


def test_observers_and_listeners_hear_what_is_recorded(tmp_path: Path) -> None:
    heard: list[LogLine] = []

    def observe(learner: MultiHeadModel, trial: Sequence[StepBatch]) -> LogLine:
        assert not any(parameter.grad is not None and parameter.grad.any() for parameter in learner.parameters())
        return {"kind": "look", "rows": sum(lesson.num_rows for lesson in trial)}

    train(training(StepBudget(4)), run_of(2), ALONE, tmp_path, [heard.append], [observe])
    assert heard == list(read_record(tmp_path / RECORD))
    assert [(line["kind"], line["step"]) for line in heard if line["kind"] == "look"] == [
        ("look", 0),
        ("look", 2),
        ("look", 4),
    ]


def test_a_training_leaves_the_draws_of_its_caller_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    made = training(StepBudget(2))
    torch.manual_seed(5)
    train(made, run_of(), ALONE, tmp_path)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("broken", ["loss", "gradient"])
def test_what_is_not_finite_stops_before_the_weights_are_moved(tmp_path: Path, broken: str) -> None:
    made = training(StepBudget(4))
    weight = made.model.network.embed.norm.weight
    assert isinstance(weight, torch.nn.Parameter)
    if broken == "loss":
        with torch.no_grad():
            weight[0] = float("nan")
    else:
        weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(UserError, match="not finite"):
        train(made, run_of(), ALONE, tmp_path)
    if broken == "gradient":
        kept = tmp_path / "not-finite-1"
        fresh = training(StepBudget(4)).model
        for name, tensor in read_tensors(kept, MODEL).items():
            assert torch.equal(tensor, fresh.get_parameter(name))
    assert not lines(tmp_path)
    assert "NaN" not in (tmp_path / RECORD).read_text()


def record(folder: Path) -> list[dict[str, Any]]:
    """The record without what the clock says, and without the starts."""
    clocks = ("seconds", "tokens_per_second", "data_wait_seconds")
    said = (line for line in read_record(folder / RECORD) if line["kind"] != "start")
    return [{name: value for name, value in line.items() if name not in clocks} for line in said]


@pytest.mark.parametrize("optimizer", [AdamW(1e-2), Muon(1e-2, AdamW(1e-2))], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("budget", [StepBudget(9), TokenBudget(400)], ids=lambda one: type(one).__name__)
def test_queued_steps_end_with_the_same_bits_and_the_same_record(
    tmp_path: Path, budget: Budget, optimizer: AdamW | Muon
) -> None:
    made = replace(recipe((0.5, 0.5)), optim=OptimConfig(optimizer, FALL))
    for queue in (0, 1, 2, 50):
        train(training(budget, made), run_of(4, max_in_flight=queue), ALONE, tmp_path / str(queue))
    ends = [list_checkpoints(tmp_path / str(queue) / "checkpoints")[-1] for queue in (0, 1, 2, 50)]
    assert len({end.name for end in ends}) == 1
    assert len({(end / MODEL).read_bytes() + (end / OPTIMIZER).read_bytes() for end in ends}) == 1
    assert all(record(tmp_path / str(queue)) == record(tmp_path / "0") for queue in (1, 2, 50))


def test_a_queued_run_in_hours_ends_when_the_time_is_over(tmp_path: Path, clock: Clock) -> None:
    began = clock.now
    found = go(TimeBudget(20 / 3600), tmp_path, trials=4, max_in_flight=2)
    assert 20 <= clock.now - began <= 20.7
    assert [line["step"] for line in found] == list(range(1, len(found) + 1))


def test_steps_that_are_ended_together_say_each_its_own_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of twelve are queued when the run ends; each takes some hundredths of a second, and none of them nothing."""
    take = StepRunner.run

    def slow(worker: StepRunner, loaded: DeviceBatch, counts: Sequence[float], step: int) -> AsyncScalars:
        time.sleep(0.02)
        return take(worker, loaded, counts, step)

    monkeypatch.setattr(StepRunner, "run", slow)
    found = go(StepBudget(12), tmp_path, max_in_flight=10)
    before = [0, *(line["tokens"] for line in found)]
    sizes = [line["tokens"] - earlier for earlier, line in zip(before, found, strict=False)]
    took = [size / line["tokens_per_second"] for size, line in zip(sizes, found, strict=True)]
    assert min(took) > 0.019
    assert sum(took) == pytest.approx(found[-1]["seconds"], abs=0.5)


@pytest.mark.parametrize("queue", [0, 1, 3])
@pytest.mark.parametrize("at", [2, 5])
def test_a_step_that_breaks_later_leaves_the_state_before_it(tmp_path: Path, queue: int, at: int) -> None:
    """The gradient of one step is infinite: what is kept are the weights after the steps before it."""
    sound = tmp_path / "sound"
    train(training(StepBudget(6)), run_of(6, keep_checkpoints=9, max_in_flight=queue), ALONE, sound)
    made = training(StepBudget(6))
    calls = iter(range(1, 99))
    weight = made.model.network.embed.norm.weight
    weight.register_hook(lambda gradient: gradient * (float("inf") if next(calls) == at else 1.0))
    with pytest.raises(UserError, match=f"not finite in step {at}, so the run stops"):
        train(made, run_of(1, max_in_flight=queue), ALONE, tmp_path / "broken")
    kept = tmp_path / "broken" / f"not-finite-{at}"
    good = sound / "checkpoints" / f"step-{at - 1:09d}"
    assert (kept / MODEL).read_bytes() == (good / MODEL).read_bytes()
    assert (kept / OPTIMIZER).read_bytes() == (good / OPTIMIZER).read_bytes()
    assert read_state(kept).progress.step == at - 1
    assert (kept / "batch-0.safetensors").is_file()
    assert [line["step"] for line in lines(tmp_path / "broken")] == list(range(1, at))
    assert not list_checkpoints(tmp_path / "broken" / "checkpoints")
