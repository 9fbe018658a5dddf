"""Everything that decides what is learned; how it is computed is a `RunConfig`."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.config.optim import OptimConfig
from unmask.train.batches.recipe_batches import BatchSource
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.optim.param_lr import ParamLRFn, full_lr
from unmask.train.schedule import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """Everything that decides what is learned."""

    model: MultiHeadModel
    """With its first weights; a resume replaces them."""
    source: BatchSource
    optim: OptimConfig
    budget: Budget
    seed: int
    param_lr: ParamLRFn = full_lr
    """How fast each parameter moves, and from when on."""
