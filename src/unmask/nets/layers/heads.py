"""Heads without losses: LM head, ELECTRA's discriminator head, and BERT's pooler with classes.

Shapes: T tokens, B rows, P predicted positions, D width, E embedding width, V vocabulary, C classes.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import Activation, NetworkValues
from unmask.nets.kernels.dispatch import FusableModule
from unmask.nets.layers.block import activate, linear_activation


class LMHead(FusableModule):
    """Logits over the vocabulary: a layer with activation and norm, then the token embedding itself, and a bias."""

    def __init__(self, config: NetworkValues, token: nn.Embedding) -> None:
        super().__init__()
        self.activation = Activation.GELU if config.activation is Activation.GEGLU else config.activation
        self.dense = nn.Linear(config.width, config.token_width)
        self.norm = nn.LayerNorm(config.token_width, config.norm_eps)
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, x_PD: Tensor) -> Tensor:
        """Logits for the given states."""
        return F.linear(self.transform(x_PD), self.token.weight, self.bias)

    def transform(self, x_PD: Tensor) -> Tensor:
        """What the token embedding is multiplied with."""
        x_PE: Tensor = self.norm(linear_activation(self.dense, x_PD, self.activation, self.fused))
        return x_PE


class DiscriminatorHead(FusableModule):
    """One number for each token: above 0 where it seems to have been replaced (Clark et al., 2020)."""

    biased_layers: ClassVar[tuple[str, ...]] = ("classify",)

    def __init__(self, config: NetworkValues) -> None:
        super().__init__()
        self.activation = config.activation
        self.dense = nn.Linear(config.width, config.width)
        self.classify = nn.Linear(config.width, 1)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Logits for the given states."""
        logits_T1: Tensor = self.classify(linear_activation(self.dense, x_TD, self.activation, self.fused))
        return logits_T1.squeeze(-1)


class PoolerClassifier(nn.Module):
    """Classes for a row from its first token, through BERT's pooler; some of it may be dropped out before them."""

    def __init__(self, config: NetworkValues, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout, self.activation = dropout, config.pooler_activation
        self.pool = nn.Linear(config.width, config.width)
        self.classify = nn.Linear(config.width, classes)

    def forward(self, first_BD: Tensor) -> Tensor:
        """Logits for each row."""
        pooled_BD = F.dropout(activate(self.pool(first_BD), self.activation), self.dropout, self.training)
        logits_BC: Tensor = self.classify(pooled_BD)
        return logits_BC
