"""Where a fine-tune starts: a trunk that has learned from text, or the same trunk newly drawn, under a new head.

What arrives: a network and what it shall learn to say. What leaves: a `Learner`, ready for the loop.
What never happens here: training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from torch import nn

from unmask.nets.heads import RowHead, TokenHead
from unmask.nets.model import Model
from unmask.objectives.part import Learnable
from unmask.train.learner import Learner, take_weights


class Origin(StrEnum):
    """What the trunk knows at the first step."""

    PRETRAINED = "pre-trained"
    """What it learned before; poolers and heads for tokens too, where there are such."""
    SCRATCH = "from scratch"
    """Nothing: all weights are drawn. What pre-training is worth is the difference between the two."""


def with_dropout(model: Model, dropout: float) -> Model:
    """The same weights in a network that drops out this much while it learns: a short pre-training does without."""
    shape = replace(model.shape, dropout=dropout, attention_dropout=dropout)
    other = model.like(shape, model.vocabulary)
    take_weights(other, dict(model.named_parameters()))
    return other.eval()


def new_learner(model: Model, objectives: Sequence[Learnable], seed: int, start: Origin) -> Learner:
    """A learner in the shape of a network. New heads are the same for the same seed, whatever the start."""
    learner = Learner(model.shape, objectives, model.vocabulary, model.positions)
    learner.draw(seed)
    if start is Origin.PRETRAINED:
        learner.trunk.load_state_dict(model.trunk.state_dict())
        for part in learner.heads.modules():
            _take_over(part, model)
    return learner


def _take_over(part: nn.Module, model: Model) -> None:
    """Give a part of a head what the network has learned for it."""
    match part:
        case RowHead() if model.row is not None:
            part.pool.load_state_dict(model.row.pool.state_dict())
        case TokenHead() if model.tokens is not None:
            part.load_state_dict(model.tokens.state_dict())
