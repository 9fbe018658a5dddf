"""Scalar mix: a learned weighted sum of all layers (Peters et al., 2018, ELMo). Equal weights at first.

Shapes: T tokens, D width, N layers with the embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unmask.nets.encoder import HiddenStates


class ScalarMix(nn.Module):
    """h = gamma * sum of s_j h_j with s = softmax(w); w begins at 0 and gamma at 1."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: HiddenStates) -> HiddenStates:
        """The mixture as the only layer."""
        assert len(states.layers) == len(self.weight), "there is a weight for every layer"
        share_N = self.weight.softmax(0)
        mixed_TD: Tensor = self.gamma * sum(share * layer for share, layer in zip(share_N, states.layers, strict=True))
        return HiddenStates((mixed_TD,))

    def layer_weights(self) -> tuple[float, ...]:
        """How much each layer counts, the embeddings first; they sum to 1."""
        return tuple(self.weight.detach().softmax(0).tolist())
