"""The shape of a Transformer as a value: an encoder, a decoder, or a decoder-only network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from unmask.config.attention_pattern import AttentionPattern, StreamInit
from unmask.config.sizes import Size
from unmask.core.errors import RecipeError

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.nets.accounting.flops import ForwardCost
    from unmask.nets.backbone import Backbone


class Activation(StrEnum):
    """The non-linearity between the two halves of a feed-forward layer."""

    GELU = "gelu"
    """x times the normal distribution function, exactly."""
    GELU_TANH = "gelu_tanh"
    """The approximation of Google's BERT code, ALBERT and GPT-2."""
    RELU = "relu"
    TANH = "tanh"
    GEGLU = "gated"
    """A gate with exact GELU times a linear branch (GLU)."""


class Norm(StrEnum):
    """Where the norms are placed."""

    POST = "post"
    """After each residual sum (BERT)."""
    PRE = "pre"
    """Before each branch, and once at the end (GPT-2, T5)."""


class NormKind(StrEnum):
    """How states are normed."""

    LAYER = "layer"
    """Layer norm: mean 0 and variance 1, then a learned scale and offset."""
    RMS = "rms"
    """RMSNorm: divided by the root mean square, then a learned scale (T5)."""


class Positions(StrEnum):
    """How a network knows the position of a token."""

    LEARNED = "learned"
    """A learned table, added to the token embedding (BERT)."""
    SINUSOIDAL = "sinusoidal"
    """Fixed sines and cosines, added to the token embedding (Vaswani et al., 2017)."""
    RELATIVE_BUCKETS = "relative_buckets"
    """A learned bias of attention scores for each head and bucket of distances, shared by all layers (T5)."""
    ROTARY = "rotary"
    """Queries and keys are rotated by their position (RoFormer)."""
    RELATIVE_SINUSOIDAL = "relative_sinusoidal"
    """Sines and cosines of the distance in the attention scores, with two learned offsets (Transformer-XL)."""
    NONE = "none"


class Sharing(StrEnum):
    """Which parameters all layers have in common (ALBERT)."""

    NONE = "none"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    ALL = "all"


class WeightInit(StrEnum):
    """How the spread of initial weights is chosen."""

    NORMAL = "normal"
    """`init_std` for every matrix (BERT)."""
    FAN_IN = "fan_in"
    """One over the root of the input width, and 1 for embeddings (T5, Mesh TensorFlow)."""
    SCALED_RESIDUAL = "scaled_residual"
    """`init_std`, over sqrt(2 * depth) for projections into the residual stream, halved for positions (GPT-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig:
    """A stack of Transformer blocks with its embeddings: an encoder, or decoder-only under a causal pattern."""

    depth: int
    width: int
    heads: int
    ffn_width: int
    """Width between the two halves of a feed-forward layer."""
    head_width: int = 0
    """Width of queries, keys and values of one head (T5's d_kv); 0 means the width divided by the heads."""
    embedding_width: int = 0
    """Width of the token embedding; 0 means the width of the states, anything else is projected to it (ALBERT)."""
    num_segments: int = 2
    """How many segments the network distinguishes; with 1 all tokens are of the same."""
    num_tasks: int = 0
    """How many task embeddings are added (ERNIE 2.0)."""
    has_blank_stream: bool = False
    """Whether there is one learned vector for a stream that does not start from its own tokens (XLNet)."""
    activation: Activation = Activation.GELU
    norm: Norm = Norm.POST
    norm_kind: NormKind = NormKind.LAYER
    bias: bool = True
    """Whether linear layers add a bias."""
    scale_attention: bool = True
    """Whether attention scores are divided by the square root of the head width; T5 has it in its initial weights."""
    positions: Positions = Positions.LEARNED
    relative_buckets: int = 32
    """The number of buckets of relative positions."""
    relative_max_distance: int = 128
    """From this distance on, all relative positions are in the last bucket."""
    memory_length: int = 0
    """How many states of earlier tokens each layer keeps for every row (segment recurrence, Transformer-XL)."""
    sharing: Sharing = Sharing.NONE
    share_groups: int = 1
    """How many sets of shared layers there are; the layers are divided evenly among them, in order (ALBERT)."""
    layers_per_group: int = 1
    """How many distinct layers a group has, through which its share of the depth cycles (ALBERT)."""
    position_offset: int = 0
    """The index of the first position; rows of the table before it are never used (RoBERTa: 2)."""
    pooler_activation: Activation = Activation.TANH
    """The non-linearity over the first token, before the classes of a row."""
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm_eps: float = 1e-12
    """The epsilon of norms."""
    init_std: float = 0.02
    """Standard deviation of the initial weights (a normal distribution cut at two deviations)."""
    init: WeightInit = WeightInit.NORMAL

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.heads, self.ffn_width) < 1 or (
            not self.head_width and self.width % self.heads
        ):
            raise RecipeError(
                f"A Transformer needs positive sizes and a width that its heads divide; found depth {self.depth}, "
                f"width {self.width}, {self.heads} heads, ffn_width {self.ffn_width}. Change one, or set head_width."
            )
        if min(self.embedding_width, self.num_segments, self.num_tasks, self.head_width, self.memory_length) < 0:
            raise RecipeError(
                f"A Transformer needs 0 or more segments, task embeddings, widths and states in memory; found "
                f"{self.num_segments}, {self.num_tasks}, {self.embedding_width}, {self.head_width} and "
                f"{self.memory_length}."
            )
        if min(self.norm_eps, self.init_std) <= 0:
            raise RecipeError(
                f"A Transformer needs a positive norm_eps and init_std; found {self.norm_eps:g} and {self.init_std:g}."
            )
        if not (0 <= self.dropout < 1 and 0 <= self.attention_dropout < 1):
            raise RecipeError(f"Dropout lies between 0 and 1, found {self.dropout} and {self.attention_dropout}.")
        if self.position_offset < 0:
            raise RecipeError(f"The first position has index 0 or more, found {self.position_offset}.")
        if self.relative_buckets < 4 or self.relative_max_distance <= self.relative_buckets // 2:
            raise RecipeError(
                f"Relative positions need 4 or more buckets and a maximum distance above half of them; found "
                f"{self.relative_buckets} and {self.relative_max_distance}."
            )
        self._check_sharing()

    @property
    def token_width(self) -> int:
        """Width of the token embedding."""
        return self.embedding_width or self.width

    @property
    def stream_width(self) -> int:
        """The width of the states."""
        return self.width

    @property
    def qkv_width(self) -> int:
        """Width of the queries, keys or values of all heads."""
        return self.heads * (self.head_width or self.width // self.heads)

    @property
    def size(self) -> Size:
        """Depth and widths, to be compared with the published sizes."""
        return Size(self.depth, self.width, self.heads, self.ffn_width)

    @property
    def num_distinct_layers(self) -> int:
        """How many sets of shared weights there are; without sharing every layer is a set of its own."""
        return self.depth if self.sharing is Sharing.NONE else self.share_groups * self.layers_per_group

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """The set of weights at each depth. Two groups of three sets: 0 1 2 0 1 2, then 3 4 5 3 4 5."""
        if self.sharing is Sharing.NONE:
            return tuple(range(self.depth))
        part = self.depth // self.share_groups
        return tuple(
            layer // part * self.layers_per_group + layer % self.layers_per_group for layer in range(self.depth)
        )

    def is_shared(self, branch: Sharing) -> bool:
        """Whether layers share this branch: `ATTENTION` or `FEED_FORWARD`."""
        return self.sharing in (branch, Sharing.ALL)

    def check_attention(self, name: str, attention: AttentionPattern) -> None:
        """Refuse a stream that starts from no token where there is no vector for it."""
        blank = [stream.name for stream in attention.streams if stream.starts_from is StreamInit.BLANK]
        if blank and not self.has_blank_stream:
            raise RecipeError(
                f"{name} has the stream '{blank[0]}', which does not start from tokens, but the network has no vector "
                "for it to start from. Set network.has_blank_stream=true."
            )

    def build(self, vocab_size: int, max_positions: int) -> Backbone:
        """The network with weights yet to be initialized."""
        from unmask.nets.encoder import TransformerEncoder

        return TransformerEncoder(self, vocab_size, max_positions)

    def num_parameters(self, vocab_size: int, max_positions: int) -> int:
        """Embeddings and blocks."""
        from unmask.nets.accounting.parameters import encoder_parameters

        return encoder_parameters(self, vocab_size, max_positions)

    def pooler_parameters(self) -> int:
        """BERT's pooler."""
        from unmask.nets.accounting.parameters import pooler_parameters

        return pooler_parameters(self)

    def forward_cost(self) -> ForwardCost:
        """All blocks, and the projection of a narrow embedding."""
        from unmask.nets.accounting.flops import encoder_cost

        return encoder_cost(self)

    def activation_bytes(self, fused: bool) -> int:
        """All blocks."""
        from unmask.nets.accounting.activation_memory import encoder_activation_bytes

        return encoder_activation_bytes(self, fused)

    def decoder_config(self, depth: int) -> TransformerConfig:
        """A decoder of the same shape with `depth` layers, as many as here for 0; shared layers form one group."""
        return replace(self, depth=depth or self.depth, share_groups=1, layers_per_group=1)

    def with_dropout(self, rate: float) -> TransformerConfig:
        """The same network with this dropout rate, of attention too."""
        return replace(self, dropout=rate, attention_dropout=rate)

    def with_settings_of(self, other: NetworkConfig) -> TransformerConfig:
        """The same network with the dropout rates and the pooler of another one, which are no part of its shape."""
        attention_dropout = other.attention_dropout if isinstance(other, TransformerConfig) else other.dropout
        pooler = other.pooler_activation
        return replace(self, dropout=other.dropout, attention_dropout=attention_dropout, pooler_activation=pooler)

    def _check_sharing(self) -> None:
        if min(self.share_groups, self.layers_per_group) < 1 or self.depth % (
            self.share_groups * self.layers_per_group
        ):
            raise RecipeError(
                f"The layers of a network are divided evenly among its groups, and each group repeats its layers a "
                f"whole number of times; found depth {self.depth}, {self.share_groups} groups of "
                f"{self.layers_per_group}. Take numbers whose product divides the depth."
            )
        if self.sharing is Sharing.NONE and self.share_groups * self.layers_per_group > 1:
            raise RecipeError(
                f"Groups name the layers that share weights, but here none do; found {self.share_groups} groups of "
                f"{self.layers_per_group}. Set sharing to attention, feed_forward or all, or leave both at 1."
            )
