"""A backbone with the heads that are exported, imported and used for inference: one module without losses."""

from __future__ import annotations

from torch import nn

from unmask.config.network import NetworkConfig
from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.nets.backbone import Backbone
from unmask.nets.encoder import TransformerEncoder
from unmask.nets.layers.heads import DiscriminatorHead, LMHead, PoolerClassifier

ROW_CLASSES = 2
"""The classes of next-sentence prediction and of sentence-order prediction."""


class EncoderWithHeads(nn.Module):
    """A backbone with an LM head, a head for rows, both or neither; or with ELECTRA's discriminator head.

    A fine-tuned network may have a token classifier: scores for every tag, or two for the ends of a span.
    """

    token_classifier: nn.Linear | None

    def __init__(
        self,
        config: NetworkConfig,
        vocab_size: int,
        max_positions: int,
        has_lm_head: bool = True,
        has_row_head: bool = True,
        has_discriminator_head: bool = False,
    ) -> None:
        super().__init__()
        self.network: Backbone = config.build(vocab_size, max_positions)
        self.lm_head = LMHead(config, self.network.token_embedding) if has_lm_head else None
        self.row_head = PoolerClassifier(config, ROW_CLASSES) if has_row_head else None
        self.discriminator_head = DiscriminatorHead(config) if has_discriminator_head else None
        self.token_classifier = None

    def with_config(self, config: NetworkConfig, vocab_size: int) -> EncoderWithHeads:
        """A network with the same heads in another shape, its weights yet to be loaded."""
        heads = (self.lm_head is not None, self.row_head is not None, self.discriminator_head is not None)
        return EncoderWithHeads(config, vocab_size, self.max_positions, *heads)

    @property
    def config(self) -> NetworkConfig:
        """The configuration of the backbone."""
        return self.network.config

    @property
    def encoder(self) -> TransformerEncoder:
        """The backbone as a Transformer encoder; any other kind is refused."""
        return self.network.require_encoder("The form of another library")

    @property
    def vocab_size(self) -> int:
        """The number of rows of the token embedding."""
        return self.network.vocab_size

    @property
    def max_positions(self) -> int:
        """The longest row that a learned position table serves; 0 where rows may have any length."""
        return self.network.max_positions


def check_vocab_fits(model: EncoderWithHeads, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer with ids beyond the vocabulary of the network."""
    if tokenizer.vocab.size > model.vocab_size:
        raise InputError(
            f"The tokenizer has {tokenizer.vocab.size} entries, but the network has rows for {model.vocab_size} only. "
            "Use the tokenizer that the network was trained with, or extend the network."
        )
