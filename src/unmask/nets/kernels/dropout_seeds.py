"""Random numbers for dropout in Triton kernels: all of a pass at once, or one draw for each call.

They come from torch's generator, so that its seed and its saved state hold, and a captured step has new ones at every
replay. A draw is a kernel that does next to nothing, and every block needs three: in a thin network that would count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

_ROUND = 4
"""Slices begin at a multiple of so many numbers: Triton would compile kernels anew for other alignments."""
_MARGIN = 512
"""Numbers after the last pair of attention, which the last two tiles read beyond the end; none of them counts."""


class DropoutSeeds(Protocol):
    """Where random numbers come from."""

    def take(self, count: int, like: Tensor) -> Tensor:
        """So many numbers that were not taken before, on the device of a tensor."""


@dataclass(frozen=True, slots=True)
class PerCallSeeds:
    """Numbers drawn at each call."""

    def take(self, count: int, like: Tensor) -> Tensor:
        """A draw."""
        return torch.empty(count, dtype=torch.int32, device=like.device).random_()


PER_CALL_SEEDS = PerCallSeeds()


@dataclass(slots=True)
class PooledSeeds:
    """Numbers that were drawn together, handed out in turn."""

    remaining: Tensor

    @staticmethod
    def of(counts: Iterable[int], device: torch.device) -> PooledSeeds:
        """Numbers for all modules, by how many each takes."""
        return PooledSeeds(torch.empty(sum(map(_round_up, counts)), dtype=torch.int32, device=device).random_())

    def take(self, count: int, like: Tensor) -> Tensor:
        """The next numbers."""
        taken, self.remaining = self.remaining[:count], self.remaining[_round_up(count) :]
        assert len(taken) == count, "more random numbers are taken than were announced"
        return taken


def attention_seed_count(heads: int, queries: int, keys: int) -> int:
    """What decides about dropout: a number for each head and token as a query, then one for each token as a key."""
    return heads * queries + keys + _MARGIN


def _round_up(count: int) -> int:
    return -(-count // _ROUND) * _ROUND
