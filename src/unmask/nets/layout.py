"""Where sequences begin and end in a flat batch, and the padded grid for kernels that need one.

What arrives: offsets of the stretches of tokens that may see each other. What leaves: everything attention asks for.
What never happens here: padding that is computed with; a padded place is never a query whose result is kept.

Shapes: T tokens of the batch, S sequences, L the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Borders:
    """Sequences of a flat batch; each is a world of its own."""

    offsets_S1: Tensor
    """int32, where each sequence begins; one more for the end."""
    place_T: Tensor
    """int64, where each token stands in the padded grid. Found on the host, so that no layer waits for the device."""
    longest: int
    equal: bool
    """Whether all sequences are equally long, so that the flat batch is a grid already."""

    @staticmethod
    def of(offsets: list[int] | Tensor, device: torch.device | str = "cpu") -> Borders:
        """Borders from offsets that lie on the host."""
        host = torch.as_tensor(offsets, dtype=torch.int32)
        lengths = host.diff()
        longest = int(lengths.max())
        gaps_S = torch.arange(len(lengths)) * longest - host[:-1]
        place_T = torch.arange(int(host[-1])) + gaps_S.repeat_interleave(lengths)
        return Borders(ship(host, device), ship(place_T, device), longest, bool((lengths == longest).all()))

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.offsets_S1) - 1

    def real_SL(self) -> Tensor:
        """Which places of the padded grid hold a token."""
        lengths_S = self.offsets_S1.diff()
        return torch.arange(self.longest, device=lengths_S.device) < lengths_S[:, None]


def to_grid(x_TD: Tensor, borders: Borders) -> Tensor:
    """A flat batch as a grid of sequences, zeros where a sequence is shorter."""
    shape = (borders.count, borders.longest, *x_TD.shape[1:])
    if borders.equal:
        return x_TD.view(shape)
    empty = x_TD.new_zeros(borders.count * borders.longest, *x_TD.shape[1:])
    return empty.index_copy(0, borders.place_T, x_TD).view(shape)


def from_grid(grid_SLD: Tensor, borders: Borders) -> Tensor:
    """Back to the flat batch."""
    flat = grid_SLD.flatten(0, 1)
    return flat if borders.equal else flat.index_select(0, borders.place_T)


def ship(host: Tensor, device: torch.device | str) -> Tensor:
    """A tensor of the host on the device. From pinned memory, so that the host does not wait until it has arrived."""
    if torch.device(device).type == "cuda":
        host = host.pin_memory()
    return host.to(device, non_blocking=True)
