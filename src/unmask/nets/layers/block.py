"""One Transformer block: attention and feed-forward, each with its residual, norm and dropout.

What arrives: states. What leaves: states, of all tokens or of some. What never happens here: knowing which layer it is.

Shapes: T tokens, P places that are asked for, D width, F inner width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import Activation, Norm, Sharing, TransformerConfig
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dispatch import (
    FusableModule,
    LinearDeferredBias,
    bias_dropout_residual_norm,
    bias_gelu,
    change_linear_class,
    kernel_supports,
    residual_input,
)
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.attention import QuerySubset, SelfAttention
from unmask.nets.layers.cross_attention import EncoderOutput
from unmask.nets.layers.dropout import apply_dropout


class FeedForward(FusableModule):
    """Two linear layers with a non-linearity between them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.up = nn.Linear(config.width, config.ffn_width * (2 if config.activation is Activation.GEGLU else 1))
        self.down = nn.Linear(config.ffn_width, config.width)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Up, bend, down."""
        down_TD: Tensor = self.down(linear_activation(self.up, x_TD, self.activation, self.fused))
        return down_TD


_KERNELS = frozenset({Activation.GELU, Activation.GELU_TANH})
"""The non-linearities that there are kernels for."""


def linear_activation(layer: nn.Linear, x_TD: Tensor, activation: Activation, fused: bool = False) -> Tensor:
    """A linear layer and the non-linearity; in one pass over the product, where that is wished for and can be."""
    if fused and type(layer) is nn.Linear and activation in _KERNELS and kernel_supports(x_TD):
        return bias_gelu(F.linear(x_TD, layer.weight), layer.bias, tanh=activation is Activation.GELU_TANH)
    return activate(layer(x_TD), activation)


def activate(x_TF: Tensor, activation: Activation) -> Tensor:
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
        case Activation.GEGLU:
            gate_TF, value_TF = x_TF.chunk(2, dim=-1)
            return F.gelu(gate_TF) * value_TF


class ResidualBranch(FusableModule):
    """A piece of work with its residual, norm and dropout. Post-norm: LN(x + f(x)). Pre-norm: x + f(LN(x))."""

    def __init__(self, config: TransformerConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm_placement, self.dropout = config.norm, config.dropout
        self.sublayer = sublayer
        self.adapter: nn.Module = nn.Identity()
        """Stands between the work and its sum with the states; what a policy puts here is trained for one task."""
        self.norm = nn.LayerNorm(config.width, config.norm_eps)

    def forward(
        self,
        x_TD: Tensor,
        *context: PackedSequences | KVCache | EncoderOutput,
        positions_P: Tensor | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """Add what the work makes of the states; for all tokens, or only for those at some places, in their order."""
        shown_TD, some = self.normed_input(x_TD), None
        if positions_P is not None:
            x_TD = residual_input(x_TD).index_select(0, positions_P)
            some = QuerySubset(positions_P, self.normed_input(x_TD))
        inside = (some, seeds) if isinstance(self.sublayer, SelfAttention) else ()
        made_TD: Tensor = self.sublayer(shown_TD, *context, *inside)
        if self.fused:
            rate = self.dropout if self.training else 0.0
            return bias_dropout_residual_norm(
                x_TD, made_TD, self._last_layer.get_parameter("bias"), self.norm, rate, seeds
            )
        summed_TD = x_TD + self._dropout(self.adapter(made_TD))
        if self.norm_placement is Norm.PRE:
            return summed_TD
        normed_TD: Tensor = self.norm(summed_TD)
        return normed_TD

    def set_fused(self, on: bool) -> None:
        """Let the sum and the norm be one pass, which adds the bias of the last layer of the work as well.

        Post-norm only, and only where nothing stands between that layer and the sum, nor beside it.
        """
        last = self._last_layer
        bare = isinstance(self.adapter, nn.Identity) and type(last) in (nn.Linear, LinearDeferredBias)
        self.fused = on and bare and self.norm_placement is Norm.POST
        if isinstance(last, nn.Linear) and type(last) in (
            nn.Linear,
            LinearDeferredBias,
        ):  # nothing that is more than these
            setattr(
                self.sublayer,
                self._last_layer_name,
                change_linear_class(last, LinearDeferredBias if self.fused else nn.Linear),
            )

    def dropout_seed_counts(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers the work, and then the sum, ask for."""
        inside = self.sublayer.dropout_seed_counts(tokens) if isinstance(self.sublayer, SelfAttention) else ()
        return (*inside, 1) if self.fused and self.training and self.dropout else inside

    def normed_input(self, x_TD: Tensor) -> Tensor:
        """What the work is shown of these states."""
        if self.norm_placement is Norm.POST:
            return x_TD
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD

    @property
    def _last_layer_name(self) -> str:
        return "down" if isinstance(self.sublayer, FeedForward) else "out"

    @property
    def _last_layer(self) -> nn.Module:
        """The layer from which the work leaves."""
        layer: nn.Module = getattr(self.sublayer, self._last_layer_name)
        return layer

    def _dropout(self, x_TD: Tensor) -> Tensor:
        return apply_dropout(x_TD, self.dropout, self.training)


class Block(nn.Module):
    """Attention, then feed-forward. Either branch may be the same object in other blocks (ALBERT)."""

    def __init__(self, attention: ResidualBranch, ffn: ResidualBranch) -> None:
        super().__init__()
        self.attention, self.ffn = attention, ffn

    def forward(
        self,
        x_TD: Tensor,
        context: PackedSequences | KVCache,
        positions_P: Tensor | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """Both branches in turn; `only_P`: the places that anybody reads, if not all, in their order."""
        x_TD = self.attention(x_TD, context, positions_P=positions_P, seeds=seeds)
        fed_TD: Tensor = self.ffn(x_TD, seeds=seeds)
        return fed_TD

    def dropout_seed_counts(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers each of its kernels asks for, in turn."""
        return (*self.attention.dropout_seed_counts(tokens), *self.ffn.dropout_seed_counts(tokens))


def build_blocks(config: TransformerConfig) -> list[Block]:
    """The blocks of a trunk, with the branches that they share."""
    attend = _branches(config, SelfAttention, config.is_shared(Sharing.ATTENTION))
    feed = _branches(config, FeedForward, config.is_shared(Sharing.FEED_FORWARD))
    return [Block(*both) for both in zip(attend, feed, strict=True)]


def _branches(
    trunk: TransformerConfig, work: Callable[[TransformerConfig], nn.Module], shared: bool
) -> list[ResidualBranch]:
    """One branch for each depth: its own, or the one of the set whose turn it is."""
    made = [ResidualBranch(trunk, work(trunk)) for _ in range(trunk.num_distinct_layers if shared else trunk.depth)]
    return [made[turn] for turn in trunk.layer_of_depth] if shared else made
