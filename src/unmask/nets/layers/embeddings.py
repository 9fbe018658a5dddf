"""Embeddings of tokens, positions, segments and tasks, summed, normed, dropped out, and projected if factorized.

Shapes: T tokens, E embedding width, D width.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from unmask.config.network import Norm, Positions, TransformerConfig
from unmask.nets.kernels.dispatch import FusableModule, apply_dropout, embed_norm, kernel_supports
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.norm import build_norm


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
        self.position: nn.Module | None = None
        if config.positions is Positions.LEARNED:
            self.position = nn.Embedding(self.position_offset + max_positions, width)
        elif config.positions is Positions.SINUSOIDAL:
            self.position = SinusoidalPositions(width)
        self.segment = nn.Embedding(config.num_segments, width) if config.num_segments else None
        self.task = nn.Embedding(config.num_tasks, width) if config.num_tasks else None
        self.blank = nn.Parameter(torch.zeros(1, width)) if config.has_blank_stream else None
        """What replaces every token in a stream that does not start from its own (XLNet)."""
        self.norm = build_norm(config, width) if config.norm is Norm.POST else nn.Identity()
        self.project = nn.Linear(width, config.width, config.bias) if width != config.width else None

    def forward(
        self,
        ids_T: Tensor,
        position_T: Tensor,
        segment_T: Tensor,
        task: int = 0,
        is_blank: bool = False,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """The first states. `is_blank`: of a stream that starts from one learned vector instead of its tokens."""
        if is_blank:
            assert self.blank is not None, "a blank stream needs TransformerConfig.has_blank_stream"
            x_TE = self._finish(self.blank.expand(len(ids_T), -1), self._places(position_T), segment_T, task)
        else:
            x_TE = self._sum(ids_T, position_T, segment_T, task, seeds)
        return x_TE if self.project is None else self.project(x_TE)

    def dropout_seed_counts(self) -> tuple[int, ...]:
        """How many dropout seeds it takes, at most."""
        return (1,) if self.fused and self.training and self.dropout else ()

    def _sum(self, ids_T: Tensor, position_T: Tensor, segment_T: Tensor, task: int, draws: DropoutSeeds) -> Tensor:
        """The sum of the embeddings, normed and dropped out."""
        place_T = self._places(position_T)
        if self.fused and self._has_kernel() and kernel_supports(self.token.weight):
            assert self.position is not None, "the kernel adds learned positions"
            tables = self.token, self.position, self.segment
            rate = self.dropout if self.training else 0.0
            return embed_norm((ids_T, place_T, segment_T), tables, self.norm, rate, draws)
        return self._finish(self.token(ids_T), place_T, segment_T, task)

    def _places(self, position_T: Tensor) -> Tensor:
        """The rows of the position table."""
        return position_T + self.position_offset if self.position_offset else position_T

    def _finish(self, token_TE: Tensor, place_T: Tensor, segment_T: Tensor, task: int) -> Tensor:
        """What is known of each token, its embedding given."""
        x_TE = token_TE if self.position is None else token_TE + self.position(place_T)
        if self.segment is not None:
            alike = self.segment.num_embeddings == 1  # the segments of a pair differ by the separator alone (RoBERTa)
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
        """The longest row that the position table serves; 0 where positions are not learned."""
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
