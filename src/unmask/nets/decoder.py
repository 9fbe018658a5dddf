"""A decoder: writes a text from left to right, with an eye on the states of an encoder (Vaswani et al., 2017).

What arrives: the tokens written so far, and the states of a source. What leaves: states from which the next token of
each is said. What never happens here: a look ahead. A whole text at once and one token after another give the same.

Shapes: T tokens of all texts, U tokens of all sources, R texts that grow by one token, P places where a token is said,
D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.block import Branch, make_blocks
from unmask.nets.cross import Cross, Source
from unmask.nets.embed import Embed
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders
from unmask.nets.trunk import Norm, Sharing, Trunk


@dataclass(frozen=True, slots=True)
class Around:
    """What a block of a decoder sees of its own text, and of the source."""

    own: Borders | Kept
    source: Source | Kept


class DecoderBlock(nn.Module):
    """Attention to what was written, attention to the source, feed-forward."""

    def __init__(self, attend: Branch, consult: Branch, feed: Branch) -> None:
        super().__init__()
        self.attend, self.consult, self.feed = attend, consult, feed

    def forward(self, x_TD: Tensor, around: Around) -> Tensor:
        """The three branches in turn."""
        x_TD = self.consult(self.attend(x_TD, around.own), around.source)
        fed_TD: Tensor = self.feed(x_TD)
        return fed_TD

    def remember(self, states_UD: Tensor, borders: Borders) -> Around:
        """What is kept while texts are written for these sources. Nothing is written yet."""
        assert isinstance(self.consult.work, Cross)
        source = Kept.of(self.consult.work.keys_values(states_UD), borders)
        return Around(source.emptied(), source)


class Decoder(nn.Module):
    """A stack of decoder blocks in the shape of a trunk, on a token embedding of its own or on the encoder's."""

    def __init__(self, trunk: Trunk, token: nn.Embedding, positions: int, source: int) -> None:
        super().__init__()
        self.trunk = replace(trunk, segments=0, tasks=0)
        self.embed = Embed(self.trunk, 1, positions)
        self.embed.token = token  # in place of a table for one token
        self.layers = nn.ModuleList(make_decoder_blocks(self.trunk, source))
        self.norm = nn.LayerNorm(trunk.width, trunk.epsilon) if trunk.norm is Norm.PRE else nn.Identity()
        narrow = trunk.token_width != trunk.width
        self.project = nn.Linear(trunk.width, trunk.token_width) if narrow else nn.Identity()
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, ids_T: Tensor, position_T: Tensor, own: Borders, source: Source) -> Tensor:
        """The states of whole texts. `own` lets a token see its past only."""
        return self._run(ids_T, position_T, [Around(own, source)] * self.trunk.depth)

    def remember(self, states_UD: Tensor, borders: Borders) -> list[Around]:
        """What each block keeps of the sources, and later of what is written for them."""
        return [block.remember(states_UD, borders) for block in self.blocks()]

    def step(self, ids_R: Tensor, position_R: Tensor, kept: Sequence[Around]) -> Tensor:
        """The states of one more token for each text; what is kept grows by it."""
        return self._run(ids_R, position_R, kept)

    def logits(self, x_PD: Tensor) -> Tensor:
        """What is said next: through the token embedding itself, and a bias."""
        return F.linear(self.project(x_PD), self.embed.token.weight, self.bias)

    def blocks(self) -> Sequence[DecoderBlock]:
        """The blocks in their order."""
        return [block for block in self.layers if isinstance(block, DecoderBlock)]

    def _run(self, ids_T: Tensor, position_T: Tensor, around: Sequence[Around]) -> Tensor:
        x_TD: Tensor = self.embed(ids_T, position_T, torch.zeros_like(ids_T))
        for block, sight in zip(self.blocks(), around, strict=True):
            x_TD = block(x_TD, sight)
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD


def make_decoder_blocks(trunk: Trunk, source: int) -> list[DecoderBlock]:
    """The blocks of a decoder that looks at states of this width; what a trunk shares is shared here as well."""

    def consult() -> Branch:
        return Branch(trunk, Cross(trunk, source))

    one = consult() if trunk.sharing in (Sharing.ATTENTION, Sharing.ALL) else None
    return [DecoderBlock(block.attend, one or consult(), block.feed) for block in make_blocks(trunk)]
