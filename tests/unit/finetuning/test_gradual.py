"""Gradual unfreezing in a run: the weights of a level change from its own step on, and not before."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from little_policy import ALONE, CPU, SETTINGS, Stop, equipped, stop_at, tuning

from unmask.finetuning.methods.unfreezing import GradualUnfreezing
from unmask.finetuning.parameter_roles import locate_parameters
from unmask.train.run_config import RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, MODEL, list_checkpoints, read_tensors

SLOW = replace(SETTINGS, epochs=16 / 6)  # 16 steps: every second one unfreezes a level
JOINS = [{4}, {4}, {3, 4}, {3, 4}, {2, 3, 4}, {2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}] + [{0, 1, 2, 3, 4}] * 8
EVERY_STEP = RunConfig(device=CPU, keep_checkpoints=17, num_evals=16)


def levels_changed(folder):
    """The levels whose weights differ from the checkpoint before, checkpoint by checkpoint."""
    learner = equipped(GradualUnfreezing())
    where = locate_parameters(learner)
    weights = [dict(learner.named_weights())]
    weights += [read_tensors(path, MODEL) for path in sorted(list_checkpoints(folder / CHECKPOINTS))]
    return [
        {where[name].level for name in after if not torch.equal(after[name], before[name])}
        for before, after in pairwise(weights)
    ]


def run(made, folder, listeners=()):
    folder.mkdir(exist_ok=True)
    made.train(made.encode(), EVERY_STEP, ALONE, folder, listeners)


def test_levels_are_unfrozen_from_the_top(tmp_path):
    run(tuning(tmp_path, GradualUnfreezing(), SLOW), tmp_path / "run")
    assert levels_changed(tmp_path / "run") == JOINS


def test_a_resumed_run_unfreezes_at_the_same_steps(tmp_path):
    made = tuning(tmp_path, GradualUnfreezing(), SLOW)
    with pytest.raises(Stop):
        run(made, tmp_path / "run", (stop_at(6),))
    run(made, tmp_path / "run")
    assert levels_changed(tmp_path / "run") == JOINS
