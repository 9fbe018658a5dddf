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

from unmask.config.network import Norm, Sharing, TransformerConfig
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.layers.block import ResidualBranch, build_blocks
from unmask.nets.layers.cross_attention import CrossAttention, EncoderOutput
from unmask.nets.layers.embeddings import Embeddings


@dataclass(frozen=True, slots=True)
class DecoderContext:
    """What a block of a decoder sees of its own text, and of the source."""

    own: PackedSequences | KVCache
    source: EncoderOutput | KVCache


class DecoderBlock(nn.Module):
    """Attention to what was written, attention to the source, feed-forward."""

    def __init__(self, attention: ResidualBranch, cross_attention: ResidualBranch, ffn: ResidualBranch) -> None:
        super().__init__()
        self.attention, self.cross_attention, self.ffn = attention, cross_attention, ffn

    def forward(self, x_TD: Tensor, context: DecoderContext) -> Tensor:
        """The three branches in turn."""
        x_TD = self.cross_attention(self.attention(x_TD, context.own), context.source)
        fed_TD: Tensor = self.ffn(x_TD)
        return fed_TD

    def prefill(self, states_UD: Tensor, sequences: PackedSequences) -> DecoderContext:
        """What is kept while texts are written for these sources. Nothing is written yet."""
        assert isinstance(self.cross_attention.sublayer, CrossAttention)
        source = KVCache.from_source(self.cross_attention.sublayer.keys_values(states_UD), sequences)
        return DecoderContext(source.without_source(), source)


class Decoder(nn.Module):
    """A stack of decoder blocks in the shape of a trunk, on a token embedding of its own or on the encoder's."""

    def __init__(self, config: TransformerConfig, token: nn.Embedding, max_positions: int, source_width: int) -> None:
        super().__init__()
        self.config = replace(config, num_segments=0, num_tasks=0)
        self.embed = Embeddings(self.config, 1, max_positions)
        self.embed.token = token  # in place of a table for one token
        self.layers = nn.ModuleList(build_decoder_blocks(self.config, source_width))
        self.norm = nn.LayerNorm(config.width, config.norm_eps) if config.norm is Norm.PRE else nn.Identity()
        narrow = config.token_width != config.width
        self.project = nn.Linear(config.width, config.token_width) if narrow else nn.Identity()
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, ids_T: Tensor, position_T: Tensor, own: PackedSequences, source: EncoderOutput) -> Tensor:
        """The states of whole texts. `own` lets a token see its past only."""
        return self._run(ids_T, position_T, [DecoderContext(own, source)] * self.config.depth)

    def prefill(self, states_UD: Tensor, sequences: PackedSequences) -> list[DecoderContext]:
        """What each block keeps of the sources, and later of what is written for them."""
        return [block.prefill(states_UD, sequences) for block in self.blocks()]

    def decode_step(self, ids_R: Tensor, position_R: Tensor, contexts: Sequence[DecoderContext]) -> Tensor:
        """The states of one more token for each text; what is kept grows by it."""
        return self._run(ids_R, position_R, contexts)

    def logits(self, x_PD: Tensor) -> Tensor:
        """What is said next: through the token embedding itself, and a bias."""
        return F.linear(self.project(x_PD), self.embed.token.weight, self.bias)

    def blocks(self) -> Sequence[DecoderBlock]:
        """The blocks in their order."""
        return [block for block in self.layers if isinstance(block, DecoderBlock)]

    def _run(self, ids_T: Tensor, position_T: Tensor, around: Sequence[DecoderContext]) -> Tensor:
        x_TD: Tensor = self.embed(ids_T, position_T, torch.zeros_like(ids_T))
        for block, sight in zip(self.blocks(), around, strict=True):
            x_TD = block(x_TD, sight)
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD


def build_decoder_blocks(config: TransformerConfig, source_width: int) -> list[DecoderBlock]:
    """The blocks of a decoder that looks at states of this width; what a trunk shares is shared here as well."""

    def consult() -> ResidualBranch:
        return ResidualBranch(config, CrossAttention(config, source_width))

    one = consult() if config.sharing in (Sharing.ATTENTION, Sharing.ALL) else None
    return [DecoderBlock(block.attention, one or consult(), block.ffn) for block in build_blocks(config)]
