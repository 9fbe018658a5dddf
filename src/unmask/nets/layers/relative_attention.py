"""Relative positions in attention scores by sinusoids of the distance (Transformer-XL, Dai et al., 2019, section 3.3).

The score of query i and key j has four terms; q.k itself is the first, and `RelativeScore` adds the other three:

    q_i . k_j  +  q_i . W R_(i-j)  +  u . k_j  +  v . W R_(i-j)

R is fixed, W belongs to the layer, and the offsets u (content) and v (position) are shared by all layers. A distance
needs no position inside a row, so states of a memory keep their meaning when a segment moves on.

Shapes: S sequences, H heads, L queries, M keys, N distances, K width of a head, D width.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from unmask.config.attention_pattern import RowCoordinates
from unmask.config.network import TransformerConfig
from unmask.nets.layers.embeddings import SinusoidalPositions


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
