"""Embedding table: one vector per token and nothing above it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from unmask.config.network import EmbeddingTableConfig
from unmask.nets.backbone import Backbone
from unmask.nets.encoder import HiddenStates, TokenInputs


class EmbeddingTable(Backbone):
    """A token table."""

    def __init__(self, config: EmbeddingTableConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(vocab_size, config.width)

    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """The vector of each token."""
        return HiddenStates((self.token_embedding(tokens.ids_T),))

    def blocks(self) -> Sequence[nn.Module]:
        """None."""
        return ()

    @property
    def token_embedding(self) -> nn.Embedding:
        """The table."""
        assert isinstance(self.embed, nn.Embedding)
        return self.embed
