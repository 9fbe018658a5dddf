"""Head of a bidirectional language model: the next token by one stream, the previous token by the other.

Shapes: T tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import nn

from unmask.core.records import IGNORE_INDEX, NextToken
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.nets.kernels.dispatch import FusableModule
from unmask.objectives.heads.common import LossSum, lm_loss


class BidirectionalLMHead(FusableModule):
    """Both streams through one output: the token embedding and a bias."""

    def __init__(self, token: nn.Embedding) -> None:
        super().__init__()
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The sum of both losses; positions without a next or a previous token are ignored."""
        target, ids_T = batch.target(NextToken), batch.tokens.ids_T
        next_T = torch.where(target.weights > 0, ids_T.roll(-1), IGNORE_INDEX)
        previous_T = torch.where(target.weights.roll(1) > 0, ids_T.roll(1), IGNORE_INDEX)
        x_TD = torch.cat([states.stream(name).last_TD for name in ("forward", "backward")])
        ignored = 2 * (target.num_ignored + target.num_padding)
        return lm_loss(x_TD, self.token, self.bias, torch.cat([next_T, previous_T]), ignored, self.fused)[0]
