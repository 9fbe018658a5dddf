"""A trunk with the heads that stand on it: what is exported, imported and shown to a user.

What arrives: a `Trunk`, and the sizes that come from a tokenizer. What leaves: one module that holds every weight.
What never happens here: a loss, or a choice of where logits are needed.
"""

from __future__ import annotations

from torch import nn

from unmask.config.network import TransformerConfig
from unmask.nets.encoder import TransformerEncoder
from unmask.nets.layers.heads import DiscriminatorHead, LMHead, PoolerClassifier

ROW_CLASSES = 2
"""A pair of segments belongs together or does not; it is in order or swapped."""


class EncoderWithHeads(nn.Module):
    """A Transformer with a head for tokens, a head for rows, both or neither.

    A discriminator has a head instead that says of every token whether it was `replaced`. What was tuned for a task may
    have one linear layer that scores `each` token: a score for every tag, or two for the ends of a span.
    """

    token_classifier: nn.Linear | None

    def __init__(
        self,
        config: TransformerConfig,
        vocab_size: int,
        max_positions: int,
        has_lm_head: bool = True,
        has_row_head: bool = True,
        has_discriminator_head: bool = False,
    ) -> None:
        super().__init__()
        self.network = TransformerEncoder(config, vocab_size, max_positions)
        self.lm_head = LMHead(config, self.network.embed.token) if has_lm_head else None
        self.row_head = PoolerClassifier(config, ROW_CLASSES) if has_row_head else None
        self.discriminator_head = DiscriminatorHead(config) if has_discriminator_head else None
        self.token_classifier = None

    def with_config(self, config: TransformerConfig, vocab_size: int) -> EncoderWithHeads:
        """A network with the same heads in another shape, its weights yet to be filled in."""
        heads = (self.lm_head is not None, self.row_head is not None, self.discriminator_head is not None)
        return EncoderWithHeads(config, vocab_size, self.max_positions, *heads)

    @property
    def config(self) -> TransformerConfig:
        """The shape of the trunk as a value."""
        return self.network.config

    @property
    def vocab_size(self) -> int:
        """The number of rows of the token embedding."""
        return self.network.embed.token.num_embeddings

    @property
    def max_positions(self) -> int:
        """The longest row that the position embedding has a place for; 0 where positions are not learned."""
        return self.network.embed.max_positions
