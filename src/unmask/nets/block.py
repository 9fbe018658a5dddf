"""One Transformer block: attention and feed-forward, each with its residual, norm and dropout.

What arrives: states. What leaves: states, of all tokens or of some. What never happens here: knowing which layer it is.

Shapes: T tokens, P places that are asked for, D width, F inner width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.attention import Attention, Some
from unmask.nets.cross import Source
from unmask.nets.draws import ONE_BY_ONE, Draws
from unmask.nets.dropout import drop
from unmask.nets.fused import Lowered, Open, add_norm, bias_gelu, recast, residual, served
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders
from unmask.nets.trunk import Activation, Norm, Sharing, Trunk


class FeedForward(Lowered):
    """Two linear layers with a non-linearity between them."""

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.activation = trunk.activation
        self.up = nn.Linear(trunk.width, trunk.inner * (2 if trunk.activation is Activation.GATED else 1))
        self.down = nn.Linear(trunk.inner, trunk.width)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Up, bend, down."""
        down_TD: Tensor = self.down(bent(self.up, x_TD, self.activation, self.fused))
        return down_TD


_KERNELS = frozenset({Activation.GELU, Activation.GELU_TANH})
"""The non-linearities that there are kernels for."""


def bent(layer: nn.Linear, x_TD: Tensor, activation: Activation, fused: bool = False) -> Tensor:
    """A linear layer and the non-linearity; in one pass over the product, where that is wished for and can be."""
    if fused and type(layer) is nn.Linear and activation in _KERNELS and served(x_TD):
        return bias_gelu(F.linear(x_TD, layer.weight), layer.bias, tanh=activation is Activation.GELU_TANH)
    return bend(layer(x_TD), activation)


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


class Branch(Lowered):
    """A piece of work with its residual, norm and dropout. Post-norm: LN(x + f(x)). Pre-norm: x + f(LN(x))."""

    def __init__(self, trunk: Trunk, work: nn.Module) -> None:
        super().__init__()
        self.order, self.dropout = trunk.norm, trunk.dropout
        self.work = work
        self.adapt: nn.Module = nn.Identity()
        """Stands between the work and its sum with the states; what a policy puts here is trained for one task."""
        self.norm = nn.LayerNorm(trunk.width, trunk.epsilon)

    def forward(
        self,
        x_TD: Tensor,
        *context: Borders | Kept | Source,
        only_P: Tensor | None = None,
        draws: Draws = ONE_BY_ONE,
    ) -> Tensor:
        """Add what the work makes of the states; for all tokens, or only for those at some places, in their order."""
        shown_TD, some = self.shown(x_TD), None
        if only_P is not None:
            x_TD = residual(x_TD).index_select(0, only_P)
            some = Some(only_P, self.shown(x_TD))
        inside = (some, draws) if isinstance(self.work, Attention) else ()
        made_TD: Tensor = self.work(shown_TD, *context, *inside)
        if self.fused:
            rate = self.dropout if self.training else 0.0
            return add_norm(x_TD, made_TD, self._last.get_parameter("bias"), self.norm, rate, draws)
        summed_TD = x_TD + self._drop(self.adapt(made_TD))
        if self.order is Norm.PRE:
            return summed_TD
        normed_TD: Tensor = self.norm(summed_TD)
        return normed_TD

    def fuse(self, on: bool) -> None:
        """Let the sum and the norm be one pass, which adds the bias of the last layer of the work as well.

        Post-norm only, and only where nothing stands between that layer and the sum, nor beside it.
        """
        last = self._last
        bare = isinstance(self.adapt, nn.Identity) and type(last) in (nn.Linear, Open)
        self.fused = on and bare and self.order is Norm.POST
        if isinstance(last, nn.Linear) and type(last) in (nn.Linear, Open):  # nothing that is more than these
            setattr(self.work, self._name_of_last, recast(last, Open if self.fused else nn.Linear))

    def asks(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers the work, and then the sum, ask for."""
        inside = self.work.asks(tokens) if isinstance(self.work, Attention) else ()
        return (*inside, 1) if self.fused and self.training and self.dropout else inside

    def shown(self, x_TD: Tensor) -> Tensor:
        """What the work is shown of these states."""
        if self.order is Norm.POST:
            return x_TD
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD

    @property
    def _name_of_last(self) -> str:
        return "down" if isinstance(self.work, FeedForward) else "out"

    @property
    def _last(self) -> nn.Module:
        """The layer from which the work leaves."""
        layer: nn.Module = getattr(self.work, self._name_of_last)
        return layer

    def _drop(self, x_TD: Tensor) -> Tensor:
        return drop(x_TD, self.dropout, self.training)


class Block(nn.Module):
    """Attention, then feed-forward. Either branch may be the same object in other blocks (ALBERT)."""

    def __init__(self, attend: Branch, feed: Branch) -> None:
        super().__init__()
        self.attend, self.feed = attend, feed

    def forward(
        self, x_TD: Tensor, around: Borders | Kept, only_P: Tensor | None = None, draws: Draws = ONE_BY_ONE
    ) -> Tensor:
        """Both branches in turn; `only_P`: the places that anybody reads, if not all, in their order."""
        x_TD = self.attend(x_TD, around, only_P=only_P, draws=draws)
        fed_TD: Tensor = self.feed(x_TD, draws=draws)
        return fed_TD

    def asks(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers each of its kernels asks for, in turn."""
        return (*self.attend.asks(tokens), *self.feed.asks(tokens))


def make_blocks(trunk: Trunk) -> list[Block]:
    """The blocks of a trunk, with the branches that they share."""
    attend = _branches(trunk, Attention, trunk.shares(Sharing.ATTENTION))
    feed = _branches(trunk, FeedForward, trunk.shares(Sharing.FEED_FORWARD))
    return [Block(*both) for both in zip(attend, feed, strict=True)]


def _branches(trunk: Trunk, work: Callable[[Trunk], nn.Module], shared: bool) -> list[Branch]:
    """One branch for each depth: its own, or the one of the set whose turn it is."""
    made = [Branch(trunk, work(trunk)) for _ in range(trunk.sets if shared else trunk.depth)]
    return [made[turn] for turn in trunk.turns] if shared else made
