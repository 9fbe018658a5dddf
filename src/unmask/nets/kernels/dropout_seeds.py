"""The random numbers of dropout in kernels of our own: those of a whole pass at once, or each when it is asked for.

What arrives: how many numbers a part asks for. What leaves: so many of them on the device, int32, none below 0.
What never happens here: a generator of its own. They come from torch's, so its seed and its saved state hold, and a
recorded step has new ones every time it is repeated.

A draw is a kernel that does next to nothing, and every block asks three times: in a thin network that would count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

_ROUND = 4
"""What is handed out begins at a multiple of so many numbers: Triton would make kernels anew for other addresses."""
_MARGIN = 512
"""Numbers behind the last pair of attention, for the last two tiles to read beyond the end; none of them counts."""


class DropoutSeeds(Protocol):
    """Where random numbers come from."""

    def take(self, count: int, like: Tensor) -> Tensor:
        """So many numbers that nobody has had before, where a tensor lies."""


@dataclass(frozen=True, slots=True)
class PerCallSeeds:
    """Numbers that are drawn when they are asked for."""

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
        """Numbers for everybody who will ask, by how many each asks for."""
        return PooledSeeds(torch.empty(sum(map(_round_up, counts)), dtype=torch.int32, device=device).random_())

    def take(self, count: int, like: Tensor) -> Tensor:
        """The next ones."""
        taken, self.remaining = self.remaining[:count], self.remaining[_round_up(count) :]
        assert len(taken) == count, "more random numbers are asked for than were announced"
        return taken


def attention_seed_count(heads: int, queries: int, keys: int) -> int:
    """What decides about dropout: a number for each head and token as a query, then one for each token as a key."""
    return heads * queries + keys + _MARGIN


def _round_up(count: int) -> int:
    return -(-count // _ROUND) * _ROUND
