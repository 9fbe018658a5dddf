"""The learner: a trunk with the heads of its objectives, as one module that is wrapped once.

What arrives: a flat batch. What leaves: one `Term` for each objective of the task.
What never happens here: a weighted sum. Weights and counts are the loop's business.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from unmask.nets.batch import Batch
from unmask.nets.transformer import Transformer, draw_weights
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Term
from unmask.objectives.part import Learnable, Objective


class Learner(nn.Module):
    """A Transformer and a head for every objective, each made once even if several tasks learn it."""

    def __init__(self, trunk: Trunk, objectives: Sequence[Learnable], vocabulary: int, positions: int) -> None:
        super().__init__()
        self.trunk = Transformer(trunk, vocabulary, positions)
        self.heads = nn.ModuleDict({head_name(one): one.head(trunk, self.trunk.embed.token) for one in objectives})

    def forward(self, batch: Batch, objectives: Sequence[Objective]) -> tuple[Term, ...]:
        """One pass through the trunk, then every objective reads the states."""
        states = self.trunk(batch.tokens)
        return tuple(self.heads[head_name(objective)](states, batch) for objective in objectives)

    def draw(self, seed: int) -> None:
        """Initial weights, the same for the same seed everywhere."""
        draw_weights(self, self.trunk.trunk.spread, torch.Generator().manual_seed(seed))


def head_name(objective: Objective) -> str:
    """What a head is called in a checkpoint: the objective's kind, and the fact that it says, if any."""
    return "_".join([type(objective).__name__.lower(), *sorted(objective.facts)])
