"""Backbone: a network that turns a batch of tokens into hidden states, on which heads are built.

Every kind of `config/network.py` builds one. `blocks()` is the one list of blocks for compilation, Muon's groups,
layer-wise learning rates and adapters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from unmask.core.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from unmask.config.network import NetworkConfig
    from unmask.nets.decoder import Decoder
    from unmask.nets.encoder import EncoderMemory, HiddenStates, TokenInputs, TransformerEncoder


class Backbone(nn.Module, ABC):
    """A network without heads."""

    config: NetworkConfig
    embed: nn.Module
    """The embeddings: what is below the first block."""
    memory_length: int = 0
    """How many states of earlier tokens it keeps for each row (Transformer-XL); 0: it has no memory."""
    sparse_last_block = False
    """Whether the last block computes only the positions that heads read; a kind that cannot ignores it."""

    @abstractmethod
    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """The hidden states of all tokens; or, after the last block, of the requested positions alone.

        A network with a `memory_length` also takes a `memory`.
        """

    @abstractmethod
    def blocks(self) -> Sequence[nn.Module]:
        """Every block whose states `forward` returns, from the bottom up."""

    @property
    @abstractmethod
    def token_embedding(self) -> nn.Embedding:
        """The token table."""

    @property
    def max_positions(self) -> int:
        """The longest row that a learned position table serves; 0 where rows may have any length."""
        return 0

    @property
    def vocab_size(self) -> int:
        """The number of rows of the token table."""
        return self.token_embedding.num_embeddings

    def own_decoder(self) -> Decoder | None:
        """The decoder of an encoder-decoder network; None for any other kind, on which a head builds one."""
        return None

    def empty_memory(self, num_rows: int, device: torch.device | str = "cpu") -> EncoderMemory:
        """The memory of rows that continue nothing; for a network with a `memory_length`."""
        raise AssertionError(f"{type(self).__name__} has no memory")

    def require_encoder(self, purpose: str) -> TransformerEncoder:
        """Return this network as a Transformer encoder; any other kind is refused."""
        raise UserError(
            f"{purpose} needs a Transformer encoder, found a network of kind {type(self.config).__name__}. Use a "
            "recipe whose network is a TransformerConfig."
        )

    @torch.no_grad()
    def rescale_init(self) -> None:
        """Scale initial weights drawn with `init_std` to the spread of the paper; nothing by default."""
