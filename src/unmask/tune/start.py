"""Where a fine-tune starts: a trunk that has learned from text, or the same trunk newly drawn, under a new head.

What arrives: a network and what it shall learn to say. What leaves: a `Learner`, ready for the loop; and at the end,
the same learner with its answers in the units of the task file.
What never happens here: training.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import torch

from unmask.nets.heads import RowHead
from unmask.nets.model import Model
from unmask.objectives.heads import SayAmount, SayFact
from unmask.train.learner import Learner
from unmask.tune.row_task import RowTask


class Origin(StrEnum):
    """What the trunk knows at the first step."""

    PRETRAINED = "pre-trained"
    """What it learned before; the pooler too, where there is one."""
    SCRATCH = "from scratch"
    """Nothing: all weights are drawn. What pre-training is worth is the difference between the two."""


def new_learner(model: Model, task: RowTask, seed: int, start: Origin) -> Learner:
    """A learner in the shape of a network. The new head is the same for the same seed, whatever the start."""
    learner = Learner(model.shape, (task.objective,), model.vocabulary, model.positions)
    learner.draw(seed)
    if start is Origin.PRETRAINED:
        learner.trunk.load_state_dict(model.trunk.state_dict())
        if model.row is not None:
            row_head(learner, task).pool.load_state_dict(model.row.pool.state_dict())
    return learner


def row_head(learner: Learner, task: RowTask) -> RowHead:
    """What stands between the first token of a row and the answer."""
    head = learner.heads[task.objective.name]
    assert isinstance(head, SayFact | SayAmount)
    return head.row


@torch.no_grad()
def settle(learner: Learner, task: RowTask) -> RowTask:
    """Let the head say numbers as the task file writes them: the scale it learned in goes into its last layer."""
    last = row_head(learner, task).classify
    last.weight.mul_(task.spread)
    last.bias.mul_(task.spread).add_(task.mean)
    return replace(task, mean=0.0, spread=1.0)
