"""Launch grids of kernels over a matrix: block size and number of programs, from shape and device alone.

There is no autotuning, so a captured step and a resumed run sum in the same order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

_HELD = 2048
"""Numbers of one matrix that a program holds at once: two loads of sixteen bytes in each of its 128 threads."""
_BY_A_WARP = 1024
"""Numbers of one matrix that a program of one warp holds at once."""
_AHEAD = 3
"""Blocks that are on their way to such a warp at once."""
_WIDEST = 1024
"""Columns that a program takes where columns do not depend on each other."""
_WARPS = 4
PROGRAMS_PER_CORE = 32
"""Programs for each multiprocessor where none leaves sums behind: enough that all end at about the same time. Where
they leave sums, there are only about as many as run at once, each with a longer way."""
_FEW = 3
"""Programs on a CPU, where kernels are only tried out: enough for each to take several blocks, and for a rest."""


@dataclass(frozen=True, slots=True)
class LaunchGrid:
    """Blocks of `rows` x `block`, taken by `across` x `down` programs of so many `warps`, `stages` at once."""

    rows: int
    block: int
    across: int
    down: int
    warps: int = _WARPS
    stages: int = 1

    @property
    def grid(self) -> tuple[int, int]:
        """The programs: first those that share out the rows, then those that share out the columns."""
        return self.down, self.across


def grid_by_rows(rows: int, width: int, device: torch.device, per_core: int = PROGRAMS_PER_CORE) -> LaunchGrid:
    """Every program holds whole rows."""
    block = power_of_two(width)
    high = max(1, _HELD // block)
    return LaunchGrid(
        high, block, 1, _down(rows, high, _programs(device, per_core)), min(16, max(_WARPS, block // 512))
    )


def grid_by_warps(rows: int, width: int, device: torch.device, per_core: int = PROGRAMS_PER_CORE) -> LaunchGrid:
    """The same with one warp for a row that is not too wide: its sums along the row need no synchronization."""
    block = power_of_two(width)
    high = max(1, _BY_A_WARP // block)
    down = _down(rows, high, _programs(device, per_core))
    return LaunchGrid(high, block, 1, down, min(16, max(1, block // _BY_A_WARP)), _AHEAD)


def grid_by_columns(rows: int, width: int, device: torch.device, per_core: int = PROGRAMS_PER_CORE) -> LaunchGrid:
    """Every program takes a range of columns."""
    block = min(power_of_two(width), _WIDEST)
    across, high = -(-width // block), max(1, _HELD // block)
    return LaunchGrid(high, block, across, _down(rows, high, _programs(device, per_core) // across))


def power_of_two(number: int) -> int:
    """The next power of two, 16 at least."""
    return max(16, 1 << (number - 1).bit_length())


def partial_sums(x: Tensor, tiles: LaunchGrid, *shape: int) -> Tensor:
    """A float32 buffer for the partial sums of each program that takes rows."""
    return torch.empty(tiles.down, *shape, dtype=torch.float32, device=x.device)


def device_of(x: Tensor) -> AbstractContextManager[object]:
    """Launch on the device of a tensor: Triton takes the current device."""
    return torch.cuda.device_of(x)  # type: ignore[no-untyped-call]


def _down(rows: int, high: int, programs: int) -> int:
    """Programs that share out the rows: no more than there are blocks."""
    return max(1, min(programs, -(-rows // high)))


def _programs(device: torch.device, per_core: int) -> int:
    return per_core * _cores(device) if device.type == "cuda" else _FEW


@cache
def _cores(device: torch.device) -> int:
    found: int = torch.cuda.get_device_properties(device).multi_processor_count
    return found
