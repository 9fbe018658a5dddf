"""Relative positions in attention: T5's buckets, rotary embeddings, and Transformer-XL's terms of the score.

T5: half of the buckets hold one distance each, the others grow with the logarithm of the distance up to a maximum,
beyond which all distances share the last bucket (Raffel et al., 2020, section 2.1). Rotary: queries and keys are
rotated by angles in proportion to their place, so that a score depends on the distance alone (Su et al., 2021).

Transformer-XL (Dai et al., 2019, section 3.3): the score of query i and key j has four terms; q.k itself is the first,
and `RelativeScore` adds the other three:

    q_i . k_j  +  q_i . W R_(i-j)  +  u . k_j  +  v . W R_(i-j)

R is a sinusoid of the distance, W belongs to the layer, and the offsets u (content) and v (position) are shared by all
layers. A distance needs no position inside a row, so states of a memory keep their meaning when a segment moves on.

Shapes: S sequences (or 1), L queries, M keys, N distances, T tokens, H heads, K width of a head, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from unmask.config.attention_pattern import RowCoordinates
from unmask.config.network import Positions, TransformerConfig
from unmask.nets.layers.embeddings import SinusoidalPositions


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


class RelativeScore(nn.Module):
    """Three of the four terms of a score, divided by the root of the head width as the first one is.

    For causal patterns: a key after its query has the term of distance 0, and no weight.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.qkv_width // config.heads
        self.sinusoids = SinusoidalPositions(config.width)
        self.project = nn.Linear(config.width, config.qkv_width, bias=False)
        self.content_offset = nn.Parameter(torch.zeros(self.heads, self.head_width))
        self.position_offset = nn.Parameter(torch.zeros(self.heads, self.head_width))

    def forward(self, q_SHLK: Tensor, k_SHMK: Tensor, query: RowCoordinates, key: RowCoordinates) -> Tensor:
        """The terms of all pairs, S x H x L x M."""
        num_distances = k_SHMK.shape[2]
        distance_N = torch.arange(num_distances, device=q_SHLK.device)
        position_NHK = self.project(self.sinusoids(distance_N).to(self.project.weight.dtype))
        position_HKN = position_NHK.view(-1, self.heads, self.head_width).permute(1, 2, 0).to(q_SHLK.dtype)
        by_distance_SHLN = (q_SHLK + self.position_offset[:, None].to(q_SHLK.dtype)) @ position_HKN
        distance_SLM = (query.index - key.index).clamp(0, num_distances - 1)
        index_SHLM = distance_SLM[:, None].expand(*by_distance_SHLN.shape[:3], -1)
        position_SHLM = by_distance_SHLN.gather(-1, index_SHLM)
        content_SHM = torch.einsum("hk,shmk->shm", self.content_offset.to(k_SHMK.dtype), k_SHMK)
        terms_SHLM: Tensor = (position_SHLM + content_SHM[:, :, None]) * self.head_width**-0.5
        return terms_SHLM


def add_relative_scores(config: TransformerConfig, attention: Iterable[nn.Module]) -> None:
    """Give every self-attention its terms; all of them share the offsets of the first one."""
    first = RelativeScore(config)
    for number, one in enumerate(dict.fromkeys(attention)):
        made = RelativeScore(config) if number else first
        made.content_offset, made.position_offset = first.content_offset, first.position_offset
        one.score_bias = made
