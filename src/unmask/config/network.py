"""Network configurations: the network of a recipe, as frozen values without torch.

`NetworkConfig` is a union of few kinds. Each builds itself and counts its parameters, its FLOPs and its activation
memory, so that no other code matches on the kind. The vocabulary size and the number of positions are no part of a
configuration; they are given when a network is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from unmask.config.attention_pattern import AttentionPattern
from unmask.config.non_attention import EmbeddingTableConfig, LSTMConfig
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


NetworkConfig: TypeAlias = TransformerConfig | EncoderDecoderConfig | LSTMConfig | EmbeddingTableConfig
"""The kinds of networks. Each has what `NetworkValues` lists."""


def read_network_config(data: Mapping[str, Any]) -> NetworkConfig:
    """A configuration as the codec wrote it."""
    union: Any = NetworkConfig
    found: NetworkConfig = decode(dict(data), union)
    return found
