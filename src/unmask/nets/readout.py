"""One vector for each row of a flat batch: from its first token, from the mean of all, or from attention over them.

What arrives: states, and where each row begins. What leaves: one vector a row, then scores.
What never happens here: padding, or a loop over rows. Sums over rows are taken in float32, whatever the states are.

Shapes: T tokens, B rows, N values in G groups, D width, C classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.heads import RowHead
from unmask.nets.reading import ReadOut
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk


class First(nn.Module):
    """The state of the first token. Nothing is learned here: BERT's pooler belongs to the head."""

    def forward(self, states: States, first_B: Tensor) -> Tensor:
        """The first state of each row."""
        return states.at(first_B)


class Mean(nn.Module):
    """The mean over all tokens of a row, special ones counted."""

    def forward(self, states: States, first_B: Tensor) -> Tensor:
        """The mean state of each row."""
        x_TD = states.last_TD
        row_T = rows_of(first_B, len(x_TD))
        lengths_B = sum_groups(torch.ones_like(row_T, dtype=torch.float32), row_T, len(first_B))
        return (sum_groups(x_TD, row_T, len(first_B)) / lengths_B[:, None]).to(x_TD.dtype)


class Attend(nn.Module):
    """A sum over all tokens of a row, weighted by a softmax of how well each fits one learned query."""

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.query = nn.Linear(trunk.width, 1, bias=False)

    def forward(self, states: States, first_B: Tensor) -> Tensor:
        """The weighted sum of the states of each row."""
        x_TD = states.last_TD
        row_T = rows_of(first_B, len(x_TD))
        weights_T = log_softmax_groups(self.query(x_TD).squeeze(-1), row_T, len(first_B)).exp()
        return sum_groups(x_TD * weights_T[:, None], row_T, len(first_B)).to(x_TD.dtype)


class Scores(nn.Module):
    """Classes for a row from the vector that was read out; some of it may be dropped out before them."""

    def __init__(self, trunk: Trunk, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.classify = nn.Linear(trunk.width, classes)

    def forward(self, x_BD: Tensor) -> Tensor:
        """Logits for each row."""
        logits_BC: Tensor = self.classify(F.dropout(x_BD, self.dropout, self.training))
        return logits_BC


def read_out(read: ReadOut, trunk: Trunk) -> nn.Module:
    """What makes one vector of the states of each row."""
    match read:
        case ReadOut.FIRST:
            return First()
        case ReadOut.MEAN:
            return Mean()
        case ReadOut.ATTENTION:
            return Attend(trunk)


def row_head(read: ReadOut, trunk: Trunk, classes: int, dropout: float = 0.0) -> nn.Module:
    """What scores that vector. BERT's pooler was made for the first token, so only the first token goes through it."""
    return RowHead(trunk, classes, dropout) if read is ReadOut.FIRST else Scores(trunk, classes, dropout)


def rows_of(first_B: Tensor, tokens: int) -> Tensor:
    """The row of each token of a flat batch."""
    place_T = torch.arange(tokens, device=first_B.device)
    return torch.searchsorted(first_B, place_T, right=True) - 1


def sum_groups(x_N: Tensor, group_N: Tensor, groups: int) -> Tensor:
    """The sum of each group, over the first dimension; 0 for a group that has nothing."""
    zeros_G = torch.zeros(groups, *x_N.shape[1:], dtype=torch.float32, device=x_N.device)
    return zeros_G.index_add(0, group_N, x_N.float())


def max_groups(x_N: Tensor, group_N: Tensor, groups: int) -> Tensor:
    """The largest number of each group; minus infinity for a group that has none."""
    lowest_G = torch.full((groups,), -torch.inf, dtype=torch.float32, device=x_N.device)
    return lowest_G.scatter_reduce(0, group_N, x_N.float(), "amax")


def log_softmax_groups(x_N: Tensor, group_N: Tensor, groups: int) -> Tensor:
    """The logarithm of a softmax inside each group."""
    return x_N.float() - log_sum_groups(x_N, group_N, groups)[group_N]


def log_sum_groups(x_N: Tensor, group_N: Tensor, groups: int) -> Tensor:
    """The logarithm of the sum of exponentials of each group; the lowest of all numbers for one that has nothing."""
    held = torch.finfo(torch.float32)
    # The largest is taken away before and added after, so no exponential is too large; its gradient cancels out.
    top_G = max_groups(x_N.detach(), group_N, groups).clamp_min(held.min)
    return sum_groups((x_N.float() - top_G[group_N]).exp(), group_N, groups).clamp_min(held.tiny).log() + top_G
