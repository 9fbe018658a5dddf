"""Networks without attention: two stacks of LSTM layers (ELMo), and a bare token table (word2vec)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import BIDIRECTIONAL_LM, FULL, WITHIN_DOCUMENT, AttentionPattern
from unmask.config.sizes import Size
from unmask.config.transformer import Activation, TransformerConfig
from unmask.core.errors import RecipeError

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.nets.accounting.flops import ForwardCost
    from unmask.nets.backbone import Backbone


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
