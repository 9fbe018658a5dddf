"""Network configurations: what a recipe says about its network, as frozen values without torch.

`NetworkConfig` is a union of few kinds. Each builds itself and counts its parameters, its FLOPs and its activation
memory, so that no other code matches on the kind. The vocabulary size and the number of positions are no part of a
configuration; they are given when a network is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from unmask.config.attention_pattern import BIDIRECTIONAL_LM, FULL, WITHIN_DOCUMENT, AttentionPattern
from unmask.config.sizes import Size
from unmask.config.transformer import (
    Activation,
    Norm,
    NormKind,
    Positions,
    Sharing,
    TransformerConfig,
    WeightInit,
)
from unmask.core.codec import decode
from unmask.core.errors import RecipeError

if TYPE_CHECKING:
    from unmask.nets.accounting.flops import ForwardCost
    from unmask.nets.backbone import Backbone

__all__ = [
    "Activation",
    "EmbeddingTableConfig",
    "EncoderDecoderConfig",
    "LSTMConfig",
    "NetworkConfig",
    "NetworkValues",
    "Norm",
    "NormKind",
    "Positions",
    "Sharing",
    "TransformerConfig",
    "WeightInit",
    "read_network_config",
]


class NetworkValues(Protocol):
    """What every network configuration knows: the numbers that heads are built from, and what it can do."""

    @property
    def depth(self) -> int:
        """The number of layers above the embeddings."""

    @property
    def width(self) -> int:
        """The width of the hidden states."""

    @property
    def token_width(self) -> int:
        """The width of the token embedding."""

    @property
    def stream_width(self) -> int:
        """The width of the states of one stream of an attention pattern."""

    @property
    def num_segments(self) -> int:
        """How many segments the network distinguishes; with 1 all tokens are of the same, with 0 there is no table."""

    @property
    def activation(self) -> Activation:
        """The non-linearity of layers in heads."""

    @property
    def pooler_activation(self) -> Activation:
        """The non-linearity over the first token, before the classes of a row."""

    @property
    def dropout(self) -> float:
        """The dropout rate of states."""

    @property
    def norm_eps(self) -> float:
        """The epsilon of norms."""

    @property
    def init_std(self) -> float:
        """The standard deviation of initial weights."""

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """The set of weights at each depth; layers with the same number share them."""

    @property
    def size(self) -> Size:
        """Depth and widths, to be compared with the published sizes."""

    def check_attention(self, name: str, attention: AttentionPattern) -> None:
        """Refuse an attention pattern that the network does not compute; `name` is the task in the sentence."""

    def build(self, vocab_size: int, max_positions: int) -> Backbone:
        """The network with weights yet to be initialized."""

    def num_parameters(self, vocab_size: int, max_positions: int) -> int:
        """The exact number of parameters without heads, shared ones counted once."""

    def pooler_parameters(self) -> int:
        """The parameters of the pooler that papers count with the network; 0 where the kind has none."""

    def forward_cost(self) -> ForwardCost:
        """The FLOPs of a forward pass over the inputs."""

    def activation_bytes(self, fused: bool) -> int:
        """About how many bytes per token are saved for the backward pass, in half precision."""

    def decoder_config(self, depth: int) -> TransformerConfig:
        """The decoder of an encoder-decoder network; for an encoder one of its shape, with `depth` layers unless 0."""

    def with_dropout(self, rate: float) -> NetworkConfig:
        """The same network with this dropout rate everywhere."""

    def with_settings_of(self, other: NetworkConfig) -> NetworkConfig:
        """The same network with the dropout rates and the pooler of another one, which are no part of its shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoderConfig:
    """An encoder, and a decoder that attends to its states (Vaswani et al., 2017). Heads read the encoder's states."""

    encoder: TransformerConfig
    decoder: TransformerConfig
    share_embedding: bool = True
    """Whether encoder and decoder have one token table."""
    tie_output: bool = True
    """Whether the decoder's token table is also its output matrix."""
    scale_logits: bool = False
    """Whether states are multiplied by width^-0.5 before a tied output matrix (T5)."""

    def __post_init__(self) -> None:
        if self.share_embedding and self.encoder.token_width != self.decoder.token_width:
            raise RecipeError(
                f"An encoder and a decoder that share a token table need token embeddings of one width; found "
                f"{self.encoder.token_width} and {self.decoder.token_width}. Set share_embedding=false."
            )

    @property
    def depth(self) -> int:
        """The number of layers whose states heads read: those of the encoder."""
        return self.encoder.depth

    @property
    def width(self) -> int:
        """The width of the encoder's states."""
        return self.encoder.width

    @property
    def stream_width(self) -> int:
        """The width of the encoder's states."""
        return self.encoder.width

    @property
    def token_width(self) -> int:
        """The width of the encoder's token embedding."""
        return self.encoder.token_width

    @property
    def num_segments(self) -> int:
        """How many segments the encoder distinguishes."""
        return self.encoder.num_segments

    @property
    def activation(self) -> Activation:
        """That of the encoder."""
        return self.encoder.activation

    @property
    def pooler_activation(self) -> Activation:
        """That of the encoder."""
        return self.encoder.pooler_activation

    @property
    def dropout(self) -> float:
        """That of the encoder."""
        return self.encoder.dropout

    @property
    def norm_eps(self) -> float:
        """That of the encoder."""
        return self.encoder.norm_eps

    @property
    def init_std(self) -> float:
        """That of the encoder."""
        return self.encoder.init_std

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """That of the encoder."""
        return self.encoder.layer_of_depth

    @property
    def size(self) -> Size:
        """The size of the encoder."""
        return self.encoder.size

    def check_attention(self, name: str, attention: AttentionPattern) -> None:
        """Patterns of one stream, for the encoder; the decoder is causal."""
        if not attention.is_single:
            raise RecipeError(
                f"{name} has {len(attention.streams)} streams, but an encoder-decoder network has one. Take a pattern "
                "of one stream, or a TransformerConfig."
            )

    def build(self, vocab_size: int, max_positions: int) -> Backbone:
        """Both stacks with weights yet to be initialized."""
        from unmask.nets.encoder_decoder import EncoderDecoder

        return EncoderDecoder(self, vocab_size, max_positions)

    def num_parameters(self, vocab_size: int, max_positions: int) -> int:
        """Both stacks, shared tables once."""
        from unmask.nets.accounting.parameters import encoder_decoder_parameters

        return encoder_decoder_parameters(self, vocab_size, max_positions)

    def pooler_parameters(self) -> int:
        """None."""
        return 0

    def forward_cost(self) -> ForwardCost:
        """The encoder over the inputs; the decoder is counted by the objective whose targets it reads."""
        return self.encoder.forward_cost()

    def activation_bytes(self, fused: bool) -> int:
        """Both stacks, as if a target were as long as its source."""
        return self.encoder.activation_bytes(fused) + self.decoder.activation_bytes(fused)

    def decoder_config(self, depth: int) -> TransformerConfig:
        """The decoder."""
        return self.decoder

    def with_dropout(self, rate: float) -> EncoderDecoderConfig:
        """The same networks with this dropout rate everywhere."""
        return replace(self, encoder=self.encoder.with_dropout(rate), decoder=self.decoder.with_dropout(rate))

    def with_settings_of(self, other: NetworkConfig) -> EncoderDecoderConfig:
        """The same networks with the dropout rates of another one."""
        pair = (other.encoder, other.decoder) if isinstance(other, EncoderDecoderConfig) else (other, other)
        encoder, decoder = self.encoder.with_settings_of(pair[0]), self.decoder.with_settings_of(pair[1])
        return replace(self, encoder=encoder, decoder=decoder)


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTMConfig:
    """Two independent stacks of LSTM layers over one token table, left to right and right to left (ELMo)."""

    depth: int
    direction_width: int
    """Width of the states of one direction, and of the token table; heads read both directions side by side."""
    cell_width: int
    """Width of the cells, which are projected to `direction_width` after every step."""
    dropout: float = 0.1
    norm_eps: float = 1e-12
    """The epsilon of norms in heads."""
    init_std: float = 0.02
    """Standard deviation of the initial weights (a normal distribution cut at two deviations)."""
    num_segments: ClassVar[int] = 1
    activation: ClassVar[Activation] = Activation.RELU
    pooler_activation: ClassVar[Activation] = Activation.TANH

    def __post_init__(self) -> None:
        if min(self.depth, self.direction_width) < 1 or self.cell_width <= self.direction_width:
            raise RecipeError(
                f"An LSTM needs positive sizes and cells wider than its states; found depth {self.depth}, states of "
                f"{self.direction_width}, cells of {self.cell_width}."
            )
        if not 0 <= self.dropout < 1 or min(self.norm_eps, self.init_std) <= 0:
            raise RecipeError(
                f"An LSTM needs a dropout between 0 and 1 and a positive norm_eps and init_std; found {self.dropout}, "
                f"{self.norm_eps:g} and {self.init_std:g}."
            )

    @property
    def width(self) -> int:
        """Both directions."""
        return 2 * self.direction_width

    @property
    def stream_width(self) -> int:
        """The width of one direction."""
        return self.direction_width

    @property
    def token_width(self) -> int:
        """The token table has the width of one direction."""
        return self.direction_width

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """No layers share weights."""
        return tuple(range(self.depth))

    @property
    def size(self) -> Size:
        """Depth and widths; the two directions take the place of heads."""
        return Size(self.depth, self.width, 2, self.cell_width)

    def check_attention(self, name: str, attention: AttentionPattern) -> None:
        """One direction for each stream, or one stream of both directions."""
        _check_plain(name, attention, self, (BIDIRECTIONAL_LM,))

    def build(self, vocab_size: int, max_positions: int) -> Backbone:
        """The network with weights yet to be initialized; rows may have any length."""
        from unmask.nets.lstm import BidirectionalLSTM

        return BidirectionalLSTM(self, vocab_size)

    def num_parameters(self, vocab_size: int, max_positions: int) -> int:
        """The token table, and in each direction and layer four gates with two biases and a projection."""
        states, cells = self.direction_width, self.cell_width
        layer = 4 * cells * (2 * states + 2) + cells * states
        return vocab_size * states + 2 * self.depth * layer

    def pooler_parameters(self) -> int:
        """None."""
        return 0

    def forward_cost(self) -> ForwardCost:
        """Gates and projections of both directions; the cost does not depend on the length of rows."""
        from unmask.nets.accounting.flops import ForwardCost, matmul_flops

        layer = matmul_flops(2 * self.direction_width, 4 * self.cell_width)
        layer += matmul_flops(self.cell_width, self.direction_width)
        return ForwardCost(per_token=2 * self.depth * layer)

    def activation_bytes(self, fused: bool) -> int:
        """In each direction and layer the gates, the cells before and after tanh, and the states, in float32."""
        return 4 * 2 * self.depth * (6 * self.cell_width + 3 * self.direction_width)

    def decoder_config(self, depth: int) -> TransformerConfig:
        """None is defined on an LSTM."""
        raise _no_decoder(self)

    def with_dropout(self, rate: float) -> LSTMConfig:
        """The same network with this dropout rate."""
        return replace(self, dropout=rate)

    def with_settings_of(self, other: NetworkConfig) -> LSTMConfig:
        """The same network with the dropout rate of another one."""
        return replace(self, dropout=other.dropout)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTableConfig:
    """A token table and nothing above it: one vector per token, whatever surrounds it (word2vec)."""

    width: int
    init_std: float = 0.02
    """Standard deviation of the initial weights (a normal distribution cut at two deviations)."""
    depth: ClassVar[int] = 0
    num_segments: ClassVar[int] = 1
    dropout: ClassVar[float] = 0.0
    norm_eps: ClassVar[float] = 1e-12
    activation: ClassVar[Activation] = Activation.TANH
    pooler_activation: ClassVar[Activation] = Activation.TANH

    def __post_init__(self) -> None:
        if self.width < 1 or self.init_std <= 0:
            raise RecipeError(
                f"An embedding table needs a positive width and init_std; found {self.width} and {self.init_std:g}."
            )

    @property
    def stream_width(self) -> int:
        """The width of the table."""
        return self.width

    @property
    def token_width(self) -> int:
        """The width of the table."""
        return self.width

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """There are no layers."""
        return ()

    @property
    def size(self) -> Size:
        """The width alone."""
        return Size(0, self.width, 0, 0)

    def check_attention(self, name: str, attention: AttentionPattern) -> None:
        """The plain pattern: no token reads another."""
        _check_plain(name, attention, self)

    def build(self, vocab_size: int, max_positions: int) -> Backbone:
        """The table with weights yet to be initialized; rows may have any length."""
        from unmask.nets.embedding_table import EmbeddingTable

        return EmbeddingTable(self, vocab_size)

    def num_parameters(self, vocab_size: int, max_positions: int) -> int:
        """The table."""
        return vocab_size * self.width

    def pooler_parameters(self) -> int:
        """None."""
        return 0

    def forward_cost(self) -> ForwardCost:
        """A look-up costs no product."""
        from unmask.nets.accounting.flops import ForwardCost

        return ForwardCost()

    def activation_bytes(self, fused: bool) -> int:
        """The looked-up vector, in float32."""
        return 4 * self.width

    def decoder_config(self, depth: int) -> TransformerConfig:
        """None is defined on a table."""
        raise _no_decoder(self)

    def with_dropout(self, rate: float) -> EmbeddingTableConfig:
        """A table has no dropout."""
        return self

    def with_settings_of(self, other: NetworkConfig) -> EmbeddingTableConfig:
        """A table has no dropout."""
        return self


NetworkConfig: TypeAlias = TransformerConfig | EncoderDecoderConfig | LSTMConfig | EmbeddingTableConfig
"""The kinds of networks. Each has what `NetworkValues` lists."""


def _check_plain(
    name: str, attention: AttentionPattern, config: object, more: tuple[AttentionPattern, ...] = ()
) -> None:
    if attention not in (FULL, WITHIN_DOCUMENT, *more):
        raise RecipeError(
            f"{name} has an attention pattern, but a network of kind {type(config).__name__} has no attention to "
            "compute it with. Take the pattern FULL, or a TransformerConfig."
        )


def _no_decoder(config: object) -> RecipeError:
    return RecipeError(
        f"A decoder attends to the states of a Transformer encoder, found {type(config).__name__}. Take a "
        "TransformerConfig or an EncoderDecoderConfig."
    )


def read_network_config(data: Mapping[str, Any]) -> NetworkConfig:
    """A configuration as the codec wrote it."""
    union: Any = NetworkConfig
    found: NetworkConfig = decode(dict(data), union)
    return found
