"""Decoder: writes a text from left to right and attends to the states of an encoder (Vaswani et al., 2017).

A whole text at once (teacher forcing) and one token after another (`decode_step`) give the same states.

Shapes: T tokens of all texts, U tokens of all sources, R texts that grow by one token, P predicted positions, D width,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import Norm, TransformerConfig
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.layers.block import Block, build_blocks
from unmask.nets.layers.cross_attention import CrossAttention, EncoderOutput
from unmask.nets.layers.embeddings import Embeddings
from unmask.nets.layers.norm import build_norm


@dataclass(frozen=True, slots=True)
class DecoderContext:
    """What a block attends to: the tokens of its own text, and the source."""

    own: PackedSequences | KVCache
    source: EncoderOutput | KVCache


class Decoder(nn.Module):
    """A stack of blocks with cross-attention, on a token table of its own or on the encoder's."""

    def __init__(
        self,
        config: TransformerConfig,
        token: nn.Embedding,
        max_positions: int,
        source_width: int,
        tie_output: bool = True,
        logit_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.config = replace(config, num_segments=0, num_tasks=0)
        self.logit_scale = logit_scale
        self.embed = Embeddings(self.config, 1, max_positions)
        self.embed.token = token  # replaces a table of one row
        self.layers = nn.ModuleList(build_blocks(self.config, source_width))
        self.norm = build_norm(config, config.width) if config.norm is Norm.PRE else nn.Identity()
        narrow = config.token_width != config.width
        self.project = nn.Linear(config.width, config.token_width, config.bias) if narrow else nn.Identity()
        self.output = None if tie_output else nn.Linear(config.token_width, token.num_embeddings, bias=False)
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings)) if config.bias else None

    def forward(self, ids_T: Tensor, position_T: Tensor, own: PackedSequences, source: EncoderOutput) -> Tensor:
        """The states of whole texts; `own` is causal."""
        return self._run(ids_T, position_T, [DecoderContext(own, source)] * self.config.depth)

    def prefill(self, states_UD: Tensor, sequences: PackedSequences) -> list[DecoderContext]:
        """The KV caches of each block: keys and values of the sources, and an empty one for the texts."""
        return [_prefill(block, states_UD, sequences) for block in self.blocks()]

    def decode_step(self, ids_R: Tensor, position_R: Tensor, contexts: Sequence[DecoderContext]) -> Tensor:
        """The states of one more token for each text; the KV caches grow by it."""
        return self._run(ids_R, position_R, contexts)

    def logits(self, x_PD: Tensor) -> Tensor:
        """Logits of the next token, through the token table unless the output is untied."""
        weight = self.embed.token.weight if self.output is None else self.output.weight
        x_PE: Tensor = self.project(x_PD)
        return F.linear(x_PE if self.logit_scale == 1.0 else x_PE * self.logit_scale, weight, self.bias)

    def blocks(self) -> Sequence[Block]:
        """Every block from the bottom up."""
        return [block for block in self.layers if isinstance(block, Block)]

    def _run(self, ids_T: Tensor, position_T: Tensor, contexts: Sequence[DecoderContext]) -> Tensor:
        x_TD: Tensor = self.embed(ids_T, position_T, torch.zeros_like(ids_T))
        for block, context in zip(self.blocks(), contexts, strict=True):
            x_TD = block(x_TD, context.own, source=context.source)
        normed_TD: Tensor = self.norm(x_TD)
        return normed_TD


def _prefill(block: Block, states_UD: Tensor, sequences: PackedSequences) -> DecoderContext:
    assert block.cross_attention is not None
    assert isinstance(block.cross_attention.sublayer, CrossAttention)
    source = KVCache.from_source(block.cross_attention.sublayer.keys_values(states_UD), sequences)
    return DecoderContext(source.without_source(), source)
