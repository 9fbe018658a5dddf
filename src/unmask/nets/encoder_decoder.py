"""Encoder-decoder network: both stacks of one configuration, with shared token tables (Vaswani et al., 2017; T5).

Heads read the encoder's states; an objective that writes a target runs the decoder on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unmask.config.network import EncoderDecoderConfig
from unmask.nets.backbone import Backbone
from unmask.nets.decoder import Decoder
from unmask.nets.encoder import HiddenStates, TokenInputs, TransformerEncoder, rescale_to_fan_in
from unmask.nets.layers.block import Block
from unmask.nets.layers.embeddings import Embeddings


class EncoderDecoder(Backbone):
    """A Transformer encoder and a decoder that attends to its states."""

    config: EncoderDecoderConfig

    def __init__(self, config: EncoderDecoderConfig, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = TransformerEncoder(config.encoder, vocab_size, max_positions)
        own = None if config.share_embedding else nn.Embedding(vocab_size, config.decoder.token_width)
        scale = config.decoder.token_width**-0.5 if config.scale_logits else 1.0
        self.decoder = Decoder(
            config.decoder,
            own or self.encoder.embed.token,
            max_positions,
            config.encoder.width,
            config.tie_output,
            scale,
        )

    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """The encoder's hidden states. All of the last ones: the decoder attends to every token."""
        return self.encoder(tokens)  # type: ignore[no-any-return]

    def blocks(self) -> Sequence[Block]:
        """The encoder's blocks, whose states heads read."""
        return self.encoder.blocks()

    @property
    def embed(self) -> Embeddings:  # type: ignore[override]
        """The encoder's embeddings."""
        return self.encoder.embed

    @property
    def token_embedding(self) -> nn.Embedding:
        """The encoder's token table."""
        return self.encoder.token_embedding

    @property
    def max_positions(self) -> int:
        """The longest row that a learned position table serves; 0 where rows may have any length."""
        return self.encoder.max_positions

    def own_decoder(self) -> Decoder:
        """The decoder."""
        return self.decoder

    @torch.no_grad()
    def rescale_init(self) -> None:
        """Scale the initial weights of each stack to the spread of its configuration; a shared table once."""
        self.encoder.rescale_init()
        rescale_to_fan_in(self.decoder.layers, self.config.decoder)
        if not self.config.share_embedding:
            rescale_to_fan_in(self.decoder.embed, self.config.decoder)
