"""Where a fine-tune starts: a trunk that has learned from text, or the same trunk newly drawn, under a new head.

What arrives: a network and what it shall learn to say. What leaves: a `Learner`, ready for the loop.
What never happens here: training.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from torch import nn

from unmask.nets.layers.heads import LMHead, PoolerClassifier
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.protocol import Objective
from unmask.train.multi_head_model import MultiHeadModel, load_weights


class StartFrom(StrEnum):
    """What the trunk knows at the first step."""

    PRETRAINED = "pre-trained"
    """What it learned before; poolers and heads for tokens too, where there are such."""
    SCRATCH = "from scratch"
    """Nothing: all weights are drawn. What pre-training is worth is the difference between the two."""


def with_dropout(model: EncoderWithHeads, dropout: float) -> EncoderWithHeads:
    """The same weights in a network that drops out this much while it learns: a short pre-training does without."""
    other = model.with_config(model.config.with_dropout(dropout), model.vocab_size)
    load_weights(other, dict(model.named_parameters()))
    return other.eval()


def build_model(
    model: EncoderWithHeads, objectives: Sequence[Objective], seed: int, start: StartFrom
) -> MultiHeadModel:
    """A learner in the shape of a network. New heads are the same for the same seed, whatever the start."""
    learner = MultiHeadModel(model.config, objectives, model.vocab_size, model.max_positions)
    learner.init_weights(seed)
    if start is StartFrom.PRETRAINED:
        learner.network.load_state_dict(model.network.state_dict())
        for part in learner.heads.modules():
            _load_part(part, model)
    return learner


def _load_part(part: nn.Module, model: EncoderWithHeads) -> None:
    """Give a part of a head what the network has learned for it."""
    match part:
        case PoolerClassifier() if model.row_head is not None:
            part.pool.load_state_dict(model.row_head.pool.state_dict())
        case LMHead() if model.lm_head is not None:
            part.load_state_dict(model.lm_head.state_dict())
