"""Transformer block: attention, cross-attention and feed-forward, each with its residual, norm and dropout.

Shapes: T tokens, P positions that are read afterwards, D width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import Activation, Norm, Positions, Sharing, TransformerConfig
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dispatch import (
    FusableModule,
    LinearDeferredBias,
    apply_dropout,
    bias_dropout_residual_norm,
    bias_gelu,
    change_linear_class,
    kernel_supports,
    residual_input,
)
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.attention import KeyContext, QuerySubset, SelfAttention
from unmask.nets.layers.cross_attention import CrossAttention, EncoderOutput
from unmask.nets.layers.norm import build_norm
from unmask.nets.layers.relative_position import add_relative_scores, build_rotary, build_score_bias


class FeedForward(FusableModule):
    """Two linear layers with a non-linearity between them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation = config.activation
        gates = 2 if config.activation is Activation.GEGLU else 1
        self.up = nn.Linear(config.width, config.ffn_width * gates, config.bias)
        self.down = nn.Linear(config.ffn_width, config.width, config.bias)

    def forward(self, x_TD: Tensor) -> Tensor:
        """The first layer, the non-linearity, the second layer."""
        down_TD: Tensor = self.down(linear_activation(self.up, x_TD, self.activation, self.fused))
        return down_TD


_KERNELS = frozenset({Activation.GELU, Activation.GELU_TANH})
"""The non-linearities with a fused kernel."""


def linear_activation(layer: nn.Linear, x_TD: Tensor, activation: Activation, fused: bool = False) -> Tensor:
    """A linear layer and the non-linearity, fused into one kernel where that is possible."""
    plain = type(layer) is not nn.Linear or layer.bias is None
    if fused and not plain and activation in _KERNELS and kernel_supports(x_TD):
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
    """A sub-layer f with its residual, norm and dropout. Post-norm: norm(x + f(x)). Pre-norm: x + f(norm(x))."""

    def __init__(self, config: TransformerConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm_placement, self.dropout, self.width = config.norm, config.dropout, config.width
        self.sublayer = sublayer
        self.adapter: nn.Module = nn.Identity()
        """Applied to the output of the sub-layer before the residual sum; a fine-tuning method may replace it."""
        self.norm = build_norm(config, config.width)

    def forward(
        self,
        x_TD: Tensor,
        *context: PackedSequences | KeyContext | KVCache | EncoderOutput,
        positions_P: Tensor | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """Add the output of the sub-layer to the states; for all tokens, or only those at some positions, in order."""
        input_TD, queries = self.normed_input(x_TD), None
        if positions_P is not None:
            x_TD = residual_input(x_TD).index_select(0, positions_P)
            queries = QuerySubset(positions_P, self.normed_input(x_TD))
        context = tuple(one.map_states(self.normed_input) if isinstance(one, KeyContext) else one for one in context)
        options = (queries, seeds) if isinstance(self.sublayer, SelfAttention) else ()
        made_TD: Tensor = self.sublayer(input_TD, *context, *options)
        if self.fused:
            assert isinstance(self.norm, nn.LayerNorm), "set_fused takes layer norm alone"
            rate = self.dropout if self.training else 0.0
            return bias_dropout_residual_norm(
                x_TD, made_TD, self.last_layer.get_parameter("bias"), self.norm, rate, seeds
            )
        summed_TD = x_TD + self._dropout(self.adapter(made_TD))
        if self.norm_placement is Norm.PRE:
            return summed_TD
        normed_TD: Tensor = self.norm(summed_TD)
        return normed_TD

    def set_fused(self, on: bool) -> None:
        """Fuse bias, dropout, residual sum and norm into one kernel.

        It serves post-norm with layer norm and a bias, where no adapter changes the output of the sub-layer.
        """
        last = self.last_layer
        bare = isinstance(self.adapter, nn.Identity) and type(last) in (nn.Linear, LinearDeferredBias)
        layer_norm = self.norm_placement is Norm.POST and isinstance(self.norm, nn.LayerNorm)
        self.fused = on and bare and layer_norm and last.bias is not None
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
        """How many dropout seeds the sub-layer, and then the residual sum, take."""
        inside = self.sublayer.dropout_seed_counts(tokens) if isinstance(self.sublayer, SelfAttention) else ()
        return (*inside, 1) if self.fused and self.training and self.dropout else inside

    def normed_input(self, x_TD: Tensor) -> Tensor:
        """The input of the sub-layer: normed states with pre-norm."""
        if self.norm_placement is Norm.POST:
            return x_TD
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD

    @property
    def _last_layer_name(self) -> str:
        return "down" if isinstance(self.sublayer, FeedForward) else "out"

    @property
    def last_layer(self) -> nn.Module:
        """The last linear layer of the sub-layer."""
        layer: nn.Module = getattr(self.sublayer, self._last_layer_name)
        return layer

    def _dropout(self, x_TD: Tensor) -> Tensor:
        return apply_dropout(x_TD, self.dropout, self.training)


class Block(nn.Module):
    """Self-attention, cross-attention in a decoder, feed-forward. Blocks may share branches (ALBERT)."""

    def __init__(
        self, attention: ResidualBranch, ffn: ResidualBranch, cross_attention: ResidualBranch | None = None
    ) -> None:
        super().__init__()
        self.attention, self.ffn, self.cross_attention = attention, ffn, cross_attention

    def forward(
        self,
        x_TD: Tensor,
        context: PackedSequences | KeyContext | KVCache,
        positions_P: Tensor | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
        source: EncoderOutput | KVCache | None = None,
    ) -> Tensor:
        """The branches in turn; `positions_P`: the only positions that are read afterwards, in ascending order."""
        x_TD = self.attention(x_TD, context, positions_P=positions_P, seeds=seeds)
        if self.cross_attention is not None:
            x_TD = self.cross_attention(x_TD, source, seeds=seeds)
        fed_TD: Tensor = self.ffn(x_TD, seeds=seeds)
        return fed_TD

    def output_layers(self) -> tuple[nn.Linear, ...]:
        """The last linear layers of its branches, which write into the residual stream."""
        branches = (self.attention, self.cross_attention, self.ffn)
        layers = (branch.last_layer for branch in branches if branch is not None)
        return tuple(layer for layer in layers if isinstance(layer, nn.Linear))

    def dropout_seed_counts(self, tokens: int) -> tuple[int, ...]:
        """How many dropout seeds each of its kernels takes, in turn."""
        cross = () if self.cross_attention is None else self.cross_attention.dropout_seed_counts(tokens)
        return (*self.attention.dropout_seed_counts(tokens), *cross, *self.ffn.dropout_seed_counts(tokens))


def build_blocks(config: TransformerConfig, source_width: int = 0) -> list[Block]:
    """The blocks of a network with the branches that they share; with cross-attention to a source of some width."""
    bias, rotary = build_score_bias(config, bidirectional=not source_width), build_rotary(config)

    def build_attention(config: TransformerConfig) -> nn.Module:
        attention = SelfAttention(config)
        attention.score_bias, attention.rotary = bias, rotary
        return attention

    attention = _branches(config, build_attention, config.is_shared(Sharing.ATTENTION))
    if config.positions is Positions.RELATIVE_SINUSOIDAL:
        add_relative_scores(config, (one.sublayer for one in attention))
    ffn = _branches(config, FeedForward, config.is_shared(Sharing.FEED_FORWARD))
    if not source_width:
        return [Block(*both) for both in zip(attention, ffn, strict=True)]

    def build_cross(config: TransformerConfig) -> nn.Module:
        return CrossAttention(config, source_width)

    cross = _branches(config, build_cross, config.is_shared(Sharing.ATTENTION))
    return [Block(*three) for three in zip(attention, ffn, cross, strict=True)]


def _branches(
    config: TransformerConfig, build: Callable[[TransformerConfig], nn.Module], shared: bool
) -> list[ResidualBranch]:
    """One branch for each depth: its own, or the shared one of its group."""
    made = [
        ResidualBranch(config, build(config)) for _ in range(config.num_distinct_layers if shared else config.depth)
    ]
    return [made[layer] for layer in config.layer_of_depth] if shared else made
