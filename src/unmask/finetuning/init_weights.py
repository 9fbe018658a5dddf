"""The initial weights of fine-tuning: a pre-trained or randomly initialized encoder under new heads."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from torch import nn

from unmask.nets.layers.heads import LMHead, PoolerClassifier
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.protocol import Objective
from unmask.train.multi_head_model import MultiHeadModel, load_weights


class StartFrom(StrEnum):
    """The weights of the encoder at the first step."""

    PRETRAINED = "pre-trained"
    """Pre-trained weights, also of pooler and LM head where the model has them."""
    SCRATCH = "from scratch"
    """Random weights, to measure what pre-training contributes."""


def with_dropout(model: EncoderWithHeads, dropout: float) -> EncoderWithHeads:
    """The same weights in a model with another dropout; short pre-training often uses none."""
    other = model.with_config(model.config.with_dropout(dropout), model.vocab_size)
    load_weights(other, dict(model.named_parameters()))
    return other.eval()


def build_model(
    model: EncoderWithHeads, objectives: Sequence[Objective], seed: int, start: StartFrom
) -> MultiHeadModel:
    """A model with new heads on the encoder. Heads depend on the seed only, not on `start`."""
    learner = MultiHeadModel(model.config, objectives, model.vocab_size, model.max_positions)
    learner.init_weights(seed)
    if start is StartFrom.PRETRAINED:
        learner.network.load_state_dict(model.network.state_dict())
        for part in learner.heads.modules():
            _load_part(part, model)
    return learner


def _load_part(part: nn.Module, model: EncoderWithHeads) -> None:
    """Copy the pre-trained weights of a pooler or an LM head."""
    match part:
        case PoolerClassifier() if model.row_head is not None:
            part.pool.load_state_dict(model.row_head.pool.state_dict())
        case LMHead() if model.lm_head is not None:
            part.load_state_dict(model.lm_head.state_dict())
