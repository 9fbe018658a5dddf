"""Incremental decoding with an encoder as prefix language model: one token at a time on a KV cache of the source.

The source does not attend to what follows it, so its states never change, and the result equals a full pass under the
PREFIX_LM pattern.

Shapes: R texts that are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import HiddenStates, TransformerEncoder
from unmask.nets.layers.attention import SelfAttention


@dataclass(frozen=True, slots=True)
class NewTokens:
    """The last token of each text that is written."""

    ids_R: Tensor
    position_R: Tensor
    segment_R: Tensor


def prefill(encoder: TransformerEncoder, states: HiddenStates, sequences: PackedSequences) -> list[KVCache]:
    """What each block keeps of its sources. `states` are those of the sources, one tensor before each block."""
    kept = []
    for block, x_TD in zip(encoder.blocks(), states.layers[:-1], strict=True):
        assert isinstance(block.attention.sublayer, SelfAttention)
        kept.append(
            KVCache.from_source(block.attention.sublayer.keys_values(block.attention.normed_input(x_TD)), sequences)
        )
    return kept


def decode_step(encoder: TransformerEncoder, tokens: NewTokens, caches: Sequence[KVCache]) -> HiddenStates:
    """The states of the newest tokens; what is kept grows by them."""
    x_RD: Tensor = encoder.embed(tokens.ids_R, tokens.position_R, tokens.segment_R)
    layers = [x_RD]
    for block, memory in zip(encoder.blocks(), caches, strict=True):
        x_RD = block(x_RD, memory)
        layers.append(x_RD)
    layers[-1] = encoder.norm(x_RD)
    return HiddenStates(tuple(layers))
