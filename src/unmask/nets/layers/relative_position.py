"""Relative position bias of T5: a learned number for each head and bucket of distances, added to attention scores.

Half of the buckets hold one distance each, the others grow with the logarithm of the distance up to a maximum, beyond
which all distances share the last bucket (Raffel et al., 2020, section 2.1).

Shapes: S sequences (or 1), L queries, M keys, H heads.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unmask.config.attention_pattern import RowCoordinates
from unmask.config.network import TransformerConfig


class RelativePositionBias(nn.Module):
    """The bias of all layers of a stack."""

    def __init__(self, config: TransformerConfig, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional, self.max_distance = bidirectional, config.relative_max_distance
        self.table = nn.Embedding(config.relative_buckets, config.heads)

    def forward(self, q_SHLK: Tensor, k_SHMK: Tensor, query: RowCoordinates, key: RowCoordinates) -> Tensor:
        """The bias of every pair of a query and a key."""
        distance_SLM = torch.as_tensor(key.index - query.index)
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
