"""A trunk with the heads that stand on it: what is exported, imported and shown to a user.

What arrives: a `Trunk`, and the sizes that come from a tokenizer. What leaves: one module that holds every weight.
What never happens here: a loss, or a choice of where logits are needed.
"""

from __future__ import annotations

from torch import nn

from unmask.nets.heads import ReplacedHead, RowHead, TokenHead
from unmask.nets.transformer import Transformer
from unmask.nets.trunk import Trunk

ROW_CLASSES = 2
"""A pair of segments belongs together or does not; it is in order or swapped."""


class Model(nn.Module):
    """A Transformer with a head for tokens, a head for rows, both or neither.

    A discriminator has a head instead that says of every token whether it was `replaced`. What was tuned for a task may
    have one linear layer that scores `each` token: a score for every tag, or two for the ends of a span.
    """

    each: nn.Linear | None

    def __init__(
        self,
        trunk: Trunk,
        vocabulary: int,
        positions: int,
        tokens: bool = True,
        row: bool = True,
        replaced: bool = False,
    ) -> None:
        super().__init__()
        self.trunk = Transformer(trunk, vocabulary, positions)
        self.tokens = TokenHead(trunk, self.trunk.embed.token) if tokens else None
        self.row = RowHead(trunk, ROW_CLASSES) if row else None
        self.replaced = ReplacedHead(trunk) if replaced else None
        self.each = None

    def like(self, shape: Trunk, vocabulary: int) -> Model:
        """A network with the same heads in another shape, its weights yet to be filled in."""
        heads = (self.tokens is not None, self.row is not None, self.replaced is not None)
        return Model(shape, vocabulary, self.positions, *heads)

    @property
    def shape(self) -> Trunk:
        """The shape of the trunk as a value."""
        return self.trunk.trunk

    @property
    def vocabulary(self) -> int:
        """The number of rows of the token embedding."""
        return self.trunk.embed.token.num_embeddings

    @property
    def positions(self) -> int:
        """The longest row that the position embedding has a place for; 0 where positions are not learned."""
        return self.trunk.embed.positions
