"""Heads without losses: LM head, discriminator head, pooler, and pooling of the states of a row into one vector.

Sums over rows are taken in float32, whatever the type of the states.

Shapes: T tokens, B rows, P predicted positions, N values in G groups, D width, E embedding width, V vocabulary,
C classes.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import Activation, NetworkValues
from unmask.config.pooling import Pooling
from unmask.nets.encoder import HiddenStates
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
        """The input of the output matrix."""
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
    """Classes for a row from its first token, through BERT's pooler, with optional dropout."""

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


class ClsPooling(nn.Module):
    """The state of the first token, without parameters: BERT's pooler belongs to the head."""

    def forward(self, states: HiddenStates, row_starts_B: Tensor) -> Tensor:
        """The first state of each row."""
        return states.select(row_starts_B)


class MeanPooling(nn.Module):
    """The mean over all tokens of a row, special ones counted."""

    def forward(self, states: HiddenStates, row_starts_B: Tensor) -> Tensor:
        """The mean state of each row."""
        x_TD = states.last_TD
        row_T = row_ids(row_starts_B, len(x_TD))
        lengths_B = segment_sum(torch.ones_like(row_T, dtype=torch.float32), row_T, len(row_starts_B))
        return (segment_sum(x_TD, row_T, len(row_starts_B)) / lengths_B[:, None]).to(x_TD.dtype)


class MaxPooling(nn.Module):
    """The maximum over all tokens of a row, dimension by dimension."""

    def forward(self, states: HiddenStates, row_starts_B: Tensor) -> Tensor:
        """The maximum of the states of each row."""
        x_TD = states.last_TD
        row_TD = row_ids(row_starts_B, len(x_TD))[:, None].expand_as(x_TD)
        lowest_BD = torch.full((len(row_starts_B), x_TD.shape[1]), -torch.inf, dtype=x_TD.dtype, device=x_TD.device)
        return lowest_BD.scatter_reduce(0, row_TD, x_TD, "amax")


class AttentionPooling(nn.Module):
    """A sum over all tokens of a row, weighted by a softmax of how well each fits one learned query."""

    def __init__(self, config: NetworkValues) -> None:
        super().__init__()
        self.query = nn.Linear(config.width, 1, bias=False)

    def forward(self, states: HiddenStates, row_starts_B: Tensor) -> Tensor:
        """The weighted sum of the states of each row."""
        x_TD = states.last_TD
        row_T = row_ids(row_starts_B, len(x_TD))
        weights_T = segment_log_softmax(self.query(x_TD).squeeze(-1), row_T, len(row_starts_B)).exp()
        return segment_sum(x_TD * weights_T[:, None], row_T, len(row_starts_B)).to(x_TD.dtype)


class RowClassifier(nn.Module):
    """Classes of a row from its pooled vector, with optional dropout."""

    def __init__(self, config: NetworkValues, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.classify = nn.Linear(config.width, classes)

    def forward(self, x_BD: Tensor) -> Tensor:
        """Logits for each row."""
        logits_BC: Tensor = self.classify(F.dropout(x_BD, self.dropout, self.training))
        return logits_BC


def build_pooling(pooling: Pooling, config: NetworkValues) -> nn.Module:
    """The module that pools the states of each row."""
    match pooling:
        case Pooling.FIRST:
            return ClsPooling()
        case Pooling.MEAN:
            return MeanPooling()
        case Pooling.MAX:
            return MaxPooling()
        case Pooling.ATTENTION:
            return AttentionPooling(config)


def build_row_head(pooling: Pooling, config: NetworkValues, classes: int, dropout: float = 0.0) -> nn.Module:
    """The classifier of a pooled vector. BERT's pooler was trained on the first token, so only `CLS` pooling has it."""
    return (
        PoolerClassifier(config, classes, dropout)
        if pooling is Pooling.FIRST
        else RowClassifier(config, classes, dropout)
    )


def row_ids(row_starts_B: Tensor, tokens: int) -> Tensor:
    """The row of each token of a flat batch."""
    place_T = torch.arange(tokens, device=row_starts_B.device)
    return torch.searchsorted(row_starts_B, place_T, right=True) - 1


def segment_sum(x_N: Tensor, group_N: Tensor, num_groups: int) -> Tensor:
    """The sum of each group, over the first dimension; 0 for an empty group."""
    zeros_G = torch.zeros(num_groups, *x_N.shape[1:], dtype=torch.float32, device=x_N.device)
    return zeros_G.index_add(0, group_N, x_N.float())


def segment_max(x_N: Tensor, group_N: Tensor, num_groups: int) -> Tensor:
    """The largest number of each group; minus infinity for an empty group."""
    lowest_G = torch.full((num_groups,), -torch.inf, dtype=torch.float32, device=x_N.device)
    return lowest_G.scatter_reduce(0, group_N, x_N.float(), "amax")


def segment_log_softmax(x_N: Tensor, group_N: Tensor, num_groups: int) -> Tensor:
    """The logarithm of a softmax inside each group."""
    return x_N.float() - segment_logsumexp(x_N, group_N, num_groups)[group_N]


def segment_logsumexp(x_N: Tensor, group_N: Tensor, num_groups: int) -> Tensor:
    """The logarithm of the sum of exponentials of each group; the lowest number for an empty group."""
    held = torch.finfo(torch.float32)
    # The maximum is subtracted before and added after, so no exponential overflows; its gradient cancels out.
    top_G = segment_max(x_N.detach(), group_N, num_groups).clamp_min(held.min)
    return segment_sum((x_N.float() - top_G[group_N]).exp(), group_N, num_groups).clamp_min(held.tiny).log() + top_G
