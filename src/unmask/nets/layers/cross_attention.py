"""Cross-attention: the tokens of a decoder attend to the states of an encoder, sequence by sequence.

Shapes: T tokens of the decoder, U tokens of the encoder, D width, H heads, K width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from unmask.config.network import TransformerConfig
from unmask.nets.attention.backends import AttentionBackend, cross_attention, select_backend
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """The source: sequence i of the queries attends to all of sequence i of it, and to nothing else."""

    states_UD: Tensor
    sequences: PackedSequences
    query_sequences: PackedSequences
    """Those of the queries."""


class CrossAttention(nn.Module):
    """Multi-head attention from one batch to another, with merged key and value projections."""

    def __init__(self, config: TransformerConfig, source_width: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.backend = AttentionBackend.AUTO
        self.query_scale = 1.0 if config.scale_attention else (config.qkv_width // config.heads) ** 0.5
        """Undoes the division of scores by the root of the head width, where a network has none (T5)."""
        self.query_scale = 1.0 if config.scale_attention else (config.qkv_width // config.heads) ** 0.5
        """Undoes the division of scores by the root of the head width, where a network has none (T5)."""
        self.query = nn.Linear(config.width, config.qkv_width, config.bias)
        self.kv = nn.Linear(source_width, 2 * config.qkv_width, config.bias)
        self.out = nn.Linear(config.qkv_width, config.width, config.bias)

    def forward(self, x_TD: Tensor, source: EncoderOutput | KVCache) -> Tensor:
        """Attend to the source, or to its KV cache."""
        q_THK = self.query(x_TD).view(len(x_TD), self.heads, -1)
        q_THK = q_THK if self.query_scale == 1.0 else q_THK * self.query_scale
        q_THK = q_THK if self.query_scale == 1.0 else q_THK * self.query_scale
        y_THK = source.attend(q_THK) if isinstance(source, KVCache) else self._attend(q_THK, source)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def keys_values(self, states_UD: Tensor) -> Tensor:
        """Keys and values of a source (U x 2 x H x K)."""
        kv_U2HK: Tensor = self.kv(states_UD).view(len(states_UD), 2, self.heads, -1)
        return kv_U2HK

    def _attend(self, q_THK: Tensor, source: EncoderOutput) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        backend = select_backend(self.backend, q_THK, dropout)
        return cross_attention(
            backend, q_THK, self.keys_values(source.states_UD), source.query_sequences, source.sequences, dropout
        )
