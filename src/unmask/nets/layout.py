"""Where sequences begin and end in a flat batch, who sees whom inside one, and the padded grid that some kernels need.

What arrives: offsets of the stretches of tokens that may see each other. What leaves: everything attention asks for.
What never happens here: padding that is computed with; a padded place is never a query whose result is kept.

Shapes: T tokens of the batch, S sequences, L the longest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

HOST: Mapping[str, bool] = MappingProxyType({"host": True})
"""For a field of a batch that no kernel reads: two batches that differ in it alone are computed alike."""


class Sight(StrEnum):
    """What a token sees of its own sequence. The matrices are those of the rules in `views.py`."""

    FULL = "full"
    """Everything (`Everything`)."""
    PAST = "past"
    """Itself and what stands before it (`Past`)."""
    PREFIX = "prefix"
    """A token of the source the source, any other the source and its own past (`Prefix`)."""
    NEAR = "near"
    """What stands within its reach, to either side (`Window`)."""


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
    sight: Sight = Sight.FULL
    prefix_S: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int32))
    """int32, how many tokens at the start of each sequence are its source; empty unless the sight is PREFIX."""
    reach: int = 0
    """How many tokens to either side are seen, beside the token itself; 0 unless the sight is NEAR."""

    @staticmethod
    def of(
        offsets: Sequence[int] | Tensor,
        device: torch.device | str = "cpu",
        sight: Sight = Sight.FULL,
        prefix: Sequence[int] | Tensor = (),
        reach: int = 0,
    ) -> Borders:
        """Borders from offsets that lie on the host; also the lengths of sources (PREFIX), or a reach (NEAR)."""
        host, source = torch.as_tensor(offsets, dtype=torch.int32), torch.as_tensor(prefix, dtype=torch.int32)
        if len(source) != (len(host) - 1 if sight is Sight.PREFIX else 0):
            raise ValueError(f"{len(host) - 1} sequences under a {sight} sight, but {len(source)} sources")
        if reach < 0 or (reach and sight is not Sight.NEAR):
            raise ValueError(
                f"a reach of {reach} under a {sight} sight; it is 0 or more, and 0 unless the sight is near"
            )
        lengths = host.diff()
        if len(source) and not ((source >= 0) & (source <= lengths)).all():
            raise ValueError("a source is longer than its sequence")
        longest = int(lengths.max())
        place_T = places(host, longest)
        equal = bool((lengths == longest).all())
        source = ship(source, device) if len(source) else source
        return Borders(ship(host, device), ship(place_T, device), longest, equal, sight, source, reach)

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.offsets_S1) - 1

    def plain(self) -> Borders:
        """The same under the plainest sight that says the same: who reaches both ends of every sequence sees it all."""
        if self.sight is Sight.NEAR and self.reach >= self.longest - 1:
            return replace(self, sight=Sight.FULL, reach=0)
        return self

    def home_T(self, total: int) -> Tensor:
        """The number of the sequence to which each of all the tokens belongs."""
        return torch.bucketize(torch.arange(total, device=self.offsets_S1.device), self.offsets_S1[1:], right=True)

    def real_SL(self) -> Tensor:
        """Which places of the padded grid hold a token."""
        lengths_S = self.offsets_S1.diff()
        return torch.arange(self.longest, device=lengths_S.device) < lengths_S[:, None]

    def seen_SLL(self) -> Tensor:
        """Which places of the padded grid (last axis) each place (the axis before) may read.

        Where all places or all sequences read the same, there is one of them. Padding stands at the end of a sequence,
        so that it is nobody's past. Under a NEAR sight padding reads padding: whatever reads nothing becomes no number.
        """
        if self.sight is Sight.FULL:
            return self.real_SL()[:, None, :]
        place_L = torch.arange(self.longest, device=self.offsets_S1.device)
        if self.sight is Sight.NEAR:
            near_LL = (place_L - place_L[:, None]).abs() <= self.reach
            real_SL = self.real_SL()
            return near_LL & (real_SL[:, :, None] == real_SL[:, None, :])
        past_1LL = (place_L <= place_L[:, None])[None]
        return past_1LL if self.sight is Sight.PAST else past_1LL | (place_L < self.prefix_S[:, None])[:, None, :]


def places(offsets_S1: Tensor, longest: int) -> Tensor:
    """Where each token stands in the padded grid, on the host.

    By numpy: torch would share this little work out among threads, and wait for the slowest of them.
    """
    offsets = offsets_S1.numpy().astype(np.int64)
    gaps = np.arange(len(offsets) - 1) * longest - offsets[:-1]
    return torch.from_numpy(np.arange(offsets[-1]) + np.repeat(gaps, np.diff(offsets)))


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


def ship_ints(array: np.ndarray, device: torch.device | str) -> Tensor:
    """Whole numbers of the data half on the device, as int64."""
    return ship(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)), device)


def ship_reals(array: np.ndarray, device: torch.device | str) -> Tensor:
    """Real numbers of the data half on the device, as float32."""
    return ship(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)), device)
