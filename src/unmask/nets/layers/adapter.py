"""Bottleneck adapters (Houlsby et al., 2019), initialized near the identity.

A branch applies its adapter to the output of its sub-layer, before the residual sum and the norm.

Shapes: T tokens, D width, M width of the bottleneck.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.backbone import Backbone
from unmask.nets.layers.block import ResidualBranch

INIT_STD = 1e-3
"""Standard deviation of the first weights. Exact zeros in both layers would never get a gradient."""


class Bottleneck(nn.Module):
    """h + W2 GELU(W1 h + b1) + b2."""

    def __init__(self, width: int, bottleneck_width: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, bottleneck_width)
        self.up = nn.Linear(bottleneck_width, width)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Down, GELU, up, and add."""
        added_TD: Tensor = self.up(F.gelu(self.down(x_TD)))
        return x_TD + added_TD

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator) -> None:
        """Initial weights: a normal distribution cut at two deviations; biases 0."""
        for layer in (self.down, self.up):
            nn.init.trunc_normal_(layer.weight, 0.0, INIT_STD, -2 * INIT_STD, 2 * INIT_STD, generator=generator)
            layer.bias.zero_()


def add_adapters(network: Backbone, bottleneck_width: int, seed: int) -> None:
    """Put a bottleneck into every branch, the same for the same seed; a branch that blocks share gets one."""
    generator = torch.Generator().manual_seed(seed)
    for branch in [part for part in network.modules() if isinstance(part, ResidualBranch)]:
        branch.set_fused(False)  # the kernel adds the output of the sub-layer alone
        adapter = Bottleneck(branch.width, bottleneck_width)
        adapter.init_weights(generator)
        branch.adapter = adapter
