"""Embeddings: what a token is, where it stands, which segment and task it belongs to.

What arrives: ids, positions, segments. What leaves: the first states, normed, dropped out, projected if factorised.
What never happens here: a vocabulary size from a recipe; it comes from the tokenizer.

Shapes: T tokens, E embedding width, D width.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from unmask.config.network import Norm, Positions, TransformerConfig
from unmask.nets.kernels.dispatch import FusableModule, embed_norm, kernel_supports
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.dropout import apply_dropout


class Embeddings(FusableModule):
    """The sum of token, position, segment and task embeddings.

    `positions` is how many can be used: a table whose first position is not 0 has that many rows more (RoBERTa).
    """

    biased_layers: ClassVar[tuple[str, ...]] = ("project",)

    def __init__(self, config: TransformerConfig, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        width = config.token_width
        self.dropout, self.position_offset = config.dropout, config.position_offset
        self.token = nn.Embedding(vocab_size, width)
        learned = config.positions is Positions.LEARNED
        self.position = (
            nn.Embedding(self.position_offset + max_positions, width) if learned else SinusoidalPositions(width)
        )
        self.segment = nn.Embedding(config.num_segments, width) if config.num_segments else None
        self.task = nn.Embedding(config.num_tasks, width) if config.num_tasks else None
        self.norm = nn.LayerNorm(width, config.norm_eps) if config.norm is Norm.POST else nn.Identity()
        self.project = nn.Linear(width, config.width) if width != config.width else None

    def forward(
        self, ids_T: Tensor, position_T: Tensor, segment_T: Tensor, task: int = 0, seeds: DropoutSeeds = PER_CALL_SEEDS
    ) -> Tensor:
        """The first states."""
        x_TE = self._sum(ids_T, position_T, segment_T, task, seeds)
        return x_TE if self.project is None else self.project(x_TE)

    def dropout_seed_counts(self) -> tuple[int, ...]:
        """How many random numbers it asks for, at most."""
        return (1,) if self.fused and self.training and self.dropout else ()

    def _sum(self, ids_T: Tensor, position_T: Tensor, segment_T: Tensor, task: int, draws: DropoutSeeds) -> Tensor:
        """What is known of each token, normed and dropped out."""
        place_T = position_T + self.position_offset if self.position_offset else position_T
        if self.fused and self._has_kernel() and kernel_supports(self.token.weight):
            tables = self.token, self.position, self.segment
            rate = self.dropout if self.training else 0.0
            return embed_norm((ids_T, place_T, segment_T), tables, self.norm, rate, draws)
        x_TE: Tensor = self.token(ids_T) + self.position(place_T)
        if self.segment is not None:
            alike = self.segment.num_embeddings == 1  # a pair is then told by its separator alone (RoBERTa)
            x_TE = x_TE + (self.segment.weight[0] if alike else self.segment(segment_T))
        if self.task is not None:
            x_TE = x_TE + self.task.weight[task]
        return apply_dropout(self.norm(x_TE), self.dropout, self.training)

    def _has_kernel(self) -> bool:
        """Whether there is a kernel for these tables: learned positions, two segments at most, a norm after them."""
        few = self.task is None and (self.segment is None or self.segment.num_embeddings <= 2)
        return few and isinstance(self.position, nn.Embedding) and isinstance(self.norm, nn.LayerNorm)

    @property
    def max_positions(self) -> int:
        """The longest row that there is a place for; 0 where positions are not learned, and any row will do."""
        return self.position.num_embeddings - self.position_offset if isinstance(self.position, nn.Embedding) else 0


class SinusoidalPositions(nn.Module):
    """Sinusoidal positions: sines in the first half, cosines in the second; nothing to learn (Vaswani et al., 2017)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, position_T: Tensor) -> Tensor:
        """The waves at these positions."""
        angle = position_T[:, None] * self.get_buffer("rates")
        return torch.cat([angle.sin(), angle.cos()], dim=-1)
