"""Relative positions in attention: T5's bias of scores by buckets of distances, and rotary embeddings.

T5: half of the buckets hold one distance each, the others grow with the logarithm of the distance up to a maximum,
beyond which all distances share the last bucket (Raffel et al., 2020, section 2.1). Rotary: queries and keys are
rotated by angles in proportion to their place, so that a score depends on the distance alone (Su et al., 2021).

Shapes: S sequences (or 1), L queries, M keys, T tokens, H heads, K width of a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unmask.config.attention_pattern import RowCoordinates
from unmask.config.network import Positions, TransformerConfig


class RelativePositionBias(nn.Module):
    """The bias of all layers of a stack."""

    def __init__(self, config: TransformerConfig, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional, self.max_distance = bidirectional, config.relative_max_distance
        self.table = nn.Embedding(config.relative_buckets, config.heads)

    def forward(self, q_SHLK: Tensor, k_SHMK: Tensor, query: RowCoordinates, key: RowCoordinates) -> Tensor:
        """The bias of every pair of a query and a key."""
        distance_SLM: Tensor = key.index - query.index
        bucket_SLM = relative_bucket(distance_SLM, self.table.num_embeddings, self.max_distance, self.bidirectional)
        bias_SLMH: Tensor = self.table(bucket_SLM)
        return bias_SLMH.permute(0, 3, 1, 2)


def relative_bucket(distance: Tensor, buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    """The bucket of each distance (key minus query); with one direction, keys after the query are in bucket 0."""
    offset = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        offset = (distance > 0) * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp_min(0)
    exact = buckets // 2
    ratio = (distance.clamp_min(1).float() / exact).log() / math.log(max_distance / exact)
    large = (exact + (ratio * (buckets - exact)).long()).clamp_max(buckets - 1)
    return offset + torch.where(distance < exact, distance, large)


class RotaryPositions(nn.Module):
    """Rotates pairs of numbers of each head: the first half with the second (GPT-NeoX's layout)."""

    def __init__(self, head_width: int) -> None:
        super().__init__()
        rates = torch.exp(torch.arange(0, head_width, 2) * (-math.log(10_000.0) / head_width))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x_THK: Tensor, index_T: Tensor) -> Tensor:
        """Queries or keys, rotated by their places."""
        angle_T1K = index_T[:, None, None] * self.get_buffer("rates")
        cos, sin = angle_T1K.cos().to(x_THK.dtype), angle_T1K.sin().to(x_THK.dtype)
        a_THK, b_THK = x_THK.chunk(2, dim=-1)
        return torch.cat([a_THK * cos - b_THK * sin, b_THK * cos + a_THK * sin], dim=-1)


def build_score_bias(config: TransformerConfig, bidirectional: bool) -> nn.Module | None:
    """The bias of attention scores that all layers of a stack share, where a network has one."""
    relative = config.positions is Positions.RELATIVE_BUCKETS
    return RelativePositionBias(config, bidirectional) if relative else None


def build_rotary(config: TransformerConfig) -> nn.Module | None:
    """The rotation of queries and keys, where a network has one."""
    return RotaryPositions(config.qkv_width // config.heads) if config.positions is Positions.ROTARY else None
