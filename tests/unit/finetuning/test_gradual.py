"""Gradual unfreezing in a run: no gradient before a level's time, one after it, and the same after a resume."""

from __future__ import annotations

from dataclasses import replace

import pytest
from little_policy import SETTINGS, Stop, stop_at, tuned, tuning

from unmask.finetuning.methods.gradual_unfreezing import GradualUnfreezing
from unmask.finetuning.parameter_roles import locate_parameters
from unmask.train.step import StepRunner

SLOW = replace(SETTINGS, epochs=16 / 6)  # 16 steps, so that a level joins every 2
JOINS = [{4}, {4}, {3, 4}, {3, 4}, {2, 3, 4}, {2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}] + [{0, 1, 2, 3, 4}] * 8


@pytest.fixture
def levels_seen(monkeypatch):
    """The levels that have a gradient, step by step."""
    seen: list[set[int]] = []
    move = StepRunner._apply_gradients

    def watched(worker, sums):
        where = locate_parameters(worker.learner)
        given = {where[name].level for name, p in worker.learner.named_parameters() if p.grad is not None}
        without = {where[name].level for name, p in worker.learner.named_parameters() if p.grad is None}
        assert not given & without, "a level moves as a whole"
        seen.append(given)
        return move(worker, sums)

    monkeypatch.setattr(StepRunner, "_move", watched)
    return seen


def test_levels_join_from_the_top(tmp_path, levels_seen):
    tuned(tuning(tmp_path, GradualUnfreezing(), SLOW), tmp_path / "run")
    assert levels_seen == JOINS


def test_a_resume_thaws_what_an_undisturbed_run_had_thawed(tmp_path, levels_seen):
    made = tuning(tmp_path, GradualUnfreezing(), SLOW)
    with pytest.raises(Stop):
        tuned(made, tmp_path / "run", (stop_at(6),), trials=4)
    assert levels_seen == JOINS[:6]
    levels_seen.clear()
    tuned(made, tmp_path / "run", trials=4)
    assert levels_seen == JOINS[4:], "from the checkpoint of step 4 on"
