"""One Transformer block: attention and feed-forward, each with its residual, norm and dropout.

What arrives: states. What leaves: states of the same shape. What never happens here: knowing which layer it is.

Shapes: T tokens, D width, F inner width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.attention import Attention
from unmask.nets.cross import Source
from unmask.nets.dropout import drop
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders
from unmask.nets.trunk import Activation, Norm, Sharing, Trunk


class FeedForward(nn.Module):
    """Two linear layers with a non-linearity between them."""

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.activation = trunk.activation
        self.up = nn.Linear(trunk.width, trunk.inner * (2 if trunk.activation is Activation.GATED else 1))
        self.down = nn.Linear(trunk.inner, trunk.width)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Up, bend, down."""
        down_TD: Tensor = self.down(bend(self.up(x_TD), self.activation))
        return down_TD


def bend(x_TF: Tensor, activation: Activation) -> Tensor:
    """The non-linearity."""
    match activation:
        case Activation.GELU:
            return F.gelu(x_TF)
        case Activation.GELU_TANH:
            return F.gelu(x_TF, approximate="tanh")
        case Activation.RELU:
            return F.relu(x_TF)
        case Activation.TANH:
            return x_TF.tanh()
        case Activation.GATED:
            gate_TF, value_TF = x_TF.chunk(2, dim=-1)
            return F.gelu(gate_TF) * value_TF


class Branch(nn.Module):
    """A piece of work with its residual, norm and dropout. Post-norm: LN(x + f(x)). Pre-norm: x + f(LN(x))."""

    def __init__(self, trunk: Trunk, work: nn.Module) -> None:
        super().__init__()
        self.order, self.dropout = trunk.norm, trunk.dropout
        self.work = work
        self.adapt: nn.Module = nn.Identity()
        """Stands between the work and its sum with the states; what a policy puts here is trained for one task."""
        self.norm = nn.LayerNorm(trunk.width, trunk.epsilon)

    def forward(self, x_TD: Tensor, *context: Borders | Kept | Source) -> Tensor:
        """Add what the work makes of the states."""
        if self.order is Norm.POST:
            added_TD: Tensor = self.norm(x_TD + self._drop(self.adapt(self.work(x_TD, *context))))
            return added_TD
        return x_TD + self._drop(self.adapt(self.work(self.norm(x_TD), *context)))

    def shown(self, x_TD: Tensor) -> Tensor:
        """What the work is shown of these states."""
        if self.order is Norm.POST:
            return x_TD
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD

    def _drop(self, x_TD: Tensor) -> Tensor:
        return drop(x_TD, self.dropout, self.training)


class Block(nn.Module):
    """Attention, then feed-forward. Either branch may be the same object in other blocks (ALBERT)."""

    def __init__(self, attend: Branch, feed: Branch) -> None:
        super().__init__()
        self.attend, self.feed = attend, feed

    def forward(self, x_TD: Tensor, around: Borders | Kept) -> Tensor:
        """Both branches in turn."""
        x_TD = self.attend(x_TD, around)
        fed_TD: Tensor = self.feed(x_TD)
        return fed_TD


def make_blocks(trunk: Trunk) -> list[Block]:
    """The blocks of a trunk, with the branches that they share."""
    attend = _branches(trunk, Attention, trunk.shares(Sharing.ATTENTION))
    feed = _branches(trunk, FeedForward, trunk.shares(Sharing.FEED_FORWARD))
    return [Block(*both) for both in zip(attend, feed, strict=True)]


def _branches(trunk: Trunk, work: Callable[[Trunk], nn.Module], shared: bool) -> list[Branch]:
    """One branch for each depth: its own, or the one of the set whose turn it is."""
    made = [Branch(trunk, work(trunk)) for _ in range(trunk.sets if shared else trunk.depth)]
    return [made[turn] for turn in trunk.turns] if shared else made
