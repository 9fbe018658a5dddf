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


class Draws(Protocol):
    """Where random numbers come from."""

    def take(self, count: int, beside: Tensor) -> Tensor:
        """So many numbers that nobody has had before, where a tensor lies."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Numbers that are drawn when they are asked for."""

    def take(self, count: int, beside: Tensor) -> Tensor:
        """A draw."""
        return torch.empty(count, dtype=torch.int32, device=beside.device).random_()


ONE_BY_ONE = OneByOne()


@dataclass(slots=True)
class AtOnce:
    """Numbers that were drawn together, handed out in turn."""

    left: Tensor

    @staticmethod
    def of(counts: Iterable[int], device: torch.device) -> AtOnce:
        """Numbers for everybody who will ask, by how many each asks for."""
        return AtOnce(torch.empty(sum(map(_rounded, counts)), dtype=torch.int32, device=device).random_())

    def take(self, count: int, beside: Tensor) -> Tensor:
        """The next ones."""
        taken, self.left = self.left[:count], self.left[_rounded(count) :]
        assert len(taken) == count, "more random numbers are asked for than were announced"
        return taken


def for_attention(heads: int, queries: int, keys: int) -> int:
    """What decides about dropout: a number for each head and token as a query, then one for each token as a key."""
    return heads * queries + keys + _MARGIN


def _rounded(count: int) -> int:
    return -(-count // _ROUND) * _ROUND
