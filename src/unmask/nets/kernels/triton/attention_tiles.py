"""Tile sizes of attention kernels: the fastest measured ones for each head width, length, type and shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import torch
import triton

# mypy: disable-error-code="no-untyped-call, import-untyped, import-not-found"


@dataclass(frozen=True, slots=True)
class Tile:
    """Tile size, warps and stages of a kernel."""

    queries: int
    keys: int
    warps: int
    stages: int
    """How many tiles of what is read in a loop are on their way at once."""
    turns: int = 1
    """How many heads at most a program takes one after another; for short sequences alone."""
    registers: int | None = None
    """The most that a thread may have; without it the compiler decides."""

    def cut(self, size: int) -> Tile:
        """A tile of no more than `size` queries and keys, with as many warps as these employ."""
        queries, keys = min(self.queries, size), min(self.keys, size)
        return replace(self, queries=queries, keys=keys, warps=max(min(self.warps, queries * keys // 1024), 1))


@dataclass(frozen=True, slots=True)
class AttentionTiles:
    """The tiles of the kernels that work together."""

    forward: Tile
    back: Tile
    """To keys and values; for short sequences, of which all tokens fit into it, to queries as well."""
    queries: Tile | None = None
    """Back to queries; none for short sequences."""

    def without_register_limits(self) -> AttentionTiles:
        """The same with as many registers as the compiler likes: the limits were found on a large card."""
        tiles = (tile and replace(tile, registers=None) for tile in (self.forward, self.back, self.queries))
        return AttentionTiles(*tiles)  # type: ignore[arg-type]


MAX_SHORT_SEQLEN = 128
"""Sequences of no more tokens are short."""
SHORT_TILES: Mapping[int, AttentionTiles] = MappingProxyType(
    {
        16: AttentionTiles(Tile(64, 128, 4, 1), Tile(128, 128, 8, 2, turns=8)),
        32: AttentionTiles(Tile(64, 128, 4, 1), Tile(128, 128, 8, 2, turns=8)),
        64: AttentionTiles(Tile(64, 128, 4, 1), Tile(128, 128, 8, 2, turns=8)),
        128: AttentionTiles(Tile(64, 128, 4, 1), Tile(128, 128, 8, 1)),
    }
)
LONG_TILES: Mapping[int, AttentionTiles] = MappingProxyType(
    {
        16: AttentionTiles(Tile(128, 64, 8, 3), Tile(64, 64, 4, 2), Tile(128, 64, 8, 3)),
        32: AttentionTiles(Tile(128, 64, 8, 3), Tile(64, 64, 4, 2), Tile(128, 64, 8, 3)),
        64: AttentionTiles(Tile(64, 64, 4, 3), Tile(64, 64, 4, 3, registers=168), Tile(64, 32, 4, 3)),
        128: AttentionTiles(Tile(128, 64, 8, 2), Tile(64, 64, 8, 2), Tile(128, 64, 8, 2)),
    }
)
"""By the width of a head. Those for 64 were the fastest on an H200, though threads put some registers aside on the
way back to keys; those for 128 do so on both ways back."""
_PLAIN = Tile(32, 32, 8, 1)
"""In float32, whose products are not for matrix units and whose tiles take twice the room."""
_FEW = 64
"""Queries of a tile, where only some tokens ask."""
_ENOUGH = 162 * 1024
"""Bytes of shared memory that are enough for all tiles: an A100, H100 or H200 has them, other cards some 100,000."""


def tiles_for(width: int, max_seqlen: int, dtype: torch.dtype, shared: int = _ENOUGH) -> AttentionTiles:
    """The tiles for heads of this width and sequences of this length at most, and so many bytes of shared memory."""
    if dtype == torch.float32:
        return AttentionTiles(_PLAIN, _PLAIN, None if max_seqlen <= _PLAIN.keys else _PLAIN)
    little = shared < _ENOUGH
    if max_seqlen > MAX_SHORT_SEQLEN or (little and width > 64 and max_seqlen > 64):
        return LONG_TILES[width].without_register_limits() if little else LONG_TILES[width]
    size, found = max(triton.next_power_of_2(max_seqlen), 16), SHORT_TILES[width]
    back = replace(found.back, stages=1) if little else found.back
    return AttentionTiles(found.forward.cut(size), back.cut(size))


def tiles_for_query_subset(width: int, dtype: torch.dtype, shared: int = _ENOUGH) -> AttentionTiles:
    """The tiles for the queries of some tokens: few in each sequence, so that larger ones would stay half empty."""
    if dtype == torch.float32:
        return AttentionTiles(_PLAIN, _PLAIN, _PLAIN)
    table = LONG_TILES[width].without_register_limits() if shared < _ENOUGH else LONG_TILES[width]
    assert table.queries is not None
    forward = replace(table.forward.cut(_FEW), registers=None)
    return AttentionTiles(forward, table.back, table.queries.cut(_FEW))


@cache
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may share on a device."""
    if device.type != "cuda":
        return _ENOUGH
    found: int = torch.cuda.get_device_properties(device).shared_memory_per_block_optin  # type: ignore[attr-defined]
    return found
