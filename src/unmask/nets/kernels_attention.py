"""Attention over a flat batch in kernels of our own: any lengths, dropout inside, one gradient written in one piece.

What arrives: merged queries, keys and values as their projection gives them, and borders; full, past or near sight.
What leaves: the attended states, and on the way back the gradient of what arrived. Nothing is copied, padded or cut.
What never happens here: a wait for the device, or a draw that differs between the two ways: there is a drawn number for
each head and token as a query and one for it as a key, on the device, and dropout is a function of both.

Shapes: T tokens, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from unmask.nets import kernels_attention_back as long_back
from unmask.nets import kernels_attention_long as long
from unmask.nets import kernels_attention_short as short
from unmask.nets.draws import ONE_BY_ONE, Draws, for_attention
from unmask.nets.kernels_sums import summed
from unmask.nets.layout import Borders
from unmask.nets.tiles import beside

# mypy: disable-error-code="no-untyped-call, import-untyped, import-not-found"


@dataclass(frozen=True, slots=True)
class Tile:
    """How a kernel cuts its work."""

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

    def free(self) -> AttentionTiles:
        """The same with as many registers as the compiler likes: the limits were found on a large card."""
        tiles = (tile and replace(tile, registers=None) for tile in (self.forward, self.back, self.queries))
        return AttentionTiles(*tiles)  # type: ignore[arg-type]


SHORT = 128
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
        64: AttentionTiles(
            Tile(128, 64, 8, 3, registers=128), Tile(64, 64, 4, 3, registers=168), Tile(64, 64, 4, 3, registers=168)
        ),
        128: AttentionTiles(Tile(128, 64, 8, 2), Tile(64, 64, 8, 2), Tile(128, 64, 8, 2)),
    }
)
"""By the width of a head. Those for 64 were the fastest on an H200, though threads put some registers aside; those for
128 do so on their way back."""
_PLAIN = Tile(32, 32, 8, 1)
"""In float32, whose products are not for matrix units and whose tiles take twice the room."""
_ENOUGH = 162 * 1024
"""Bytes of shared memory that are enough for all tiles: an A100, H100 or H200 has them, other cards some 100,000."""


def tiles_for(width: int, longest: int, dtype: torch.dtype, shared: int = _ENOUGH) -> AttentionTiles:
    """The tiles for heads of this width and sequences of this length at most, and so many bytes of shared memory."""
    if dtype == torch.float32:
        return AttentionTiles(_PLAIN, _PLAIN, None if longest <= _PLAIN.keys else _PLAIN)
    little = shared < _ENOUGH
    if longest > SHORT or (little and width > 64 and longest > 64):
        return LONG_TILES[width].free() if little else LONG_TILES[width]
    size, found = max(triton.next_power_of_2(longest), 16), SHORT_TILES[width]
    back = replace(found.back, stages=1) if little else found.back
    return AttentionTiles(found.forward.cut(size), back.cut(size))


@cache
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may share on a device."""
    if device.type != "cuda":
        return _ENOUGH
    found: int = torch.cuda.get_device_properties(device).shared_memory_per_block_optin  # type: ignore[attr-defined]
    return found


def attended(
    qkv_T3HK: Tensor,
    borders: Borders,
    dropout: float = 0.0,
    owed_3D: Tensor | None = None,
    tiles: AttentionTiles | None = None,
    draws: Draws = ONE_BY_ONE,
) -> Tensor:
    """What every token hears (T x H x K). Other tiles than those of the tables are for measuring.

    `owed_3D`: a bias that is in the states already, and is owed its gradient: the sum of theirs over all tokens.
    """
    found = tiles or tiles_for(qkv_T3HK.shape[-1], borders.longest, qkv_T3HK.dtype, shared_memory(qkv_T3HK.device))
    owes = owed_3D is not None and owed_3D.requires_grad
    total, _, heads, _ = qkv_T3HK.shape
    drawn = draws.take(for_attention(heads, total), qkv_T3HK) if dropout else borders.offsets_S1
    work = _Work(borders, dropout, drawn, owes)
    y_THK: Tensor = _Attended.apply(qkv_T3HK.contiguous(), owed_3D, work, found)
    return y_THK


@dataclass(frozen=True, slots=True)
class _Work:
    """What all kernels of a call are told."""

    borders: Borders
    dropout: float
    draws: Tensor
    owes: bool
    """Whether the bias of the projection is owed its gradient."""

    def owed(self, qkv_T3HK: Tensor, tiles: AttentionTiles) -> Tensor:
        """Room for the sums that tiles leave behind, one for each at least: of queries, keys and values.

        A short sequence is one tile, and leaves sums even if it is empty; of longer ones some room may stay as it is.
        """
        size = min(tiles.queries.queries, tiles.back.keys) if tiles.queries else 0
        parts = self.borders.count + (len(qkv_T3HK) // size + 1 if size else 0)
        shape = (parts if self.owes else 0, *qkv_T3HK.shape[1:])
        room = qkv_T3HK.new_zeros if size else qkv_T3HK.new_empty
        return room(shape, dtype=torch.float32)

    def launch(self, kernel: Any, tile: Tile, step: int, qkv_T3HK: Tensor, *others: Tensor) -> None:  # noqa: ANN401
        """Start a kernel with a program for every head, or every few, and every `step` tokens of each sequence."""
        total, _, heads, width = qkv_T3HK.shape
        borders, takes = self.borders, set(kernel.arg_names)
        turns = max(few for few in range(1, tile.turns + 1) if heads % few == 0) if "TURNS" in takes else 1
        told = {"TURNS": turns, "OWES": self.owes}
        sizes = total, borders.longest, borders.reach, width**-0.5, self.dropout
        grid = (triton.cdiv(borders.longest, step) * (heads // turns) * borders.count,)
        with beside(qkv_T3HK):
            kernel[grid](
                *(qkv_T3HK, borders.offsets_S1, self.draws, *others, *sizes),
                **{name: value for name, value in told.items() if name in takes},
                HEADS=heads,
                WIDTH=width,
                SIGHT=borders.sight.value,
                DROPS=self.dropout > 0,
                M=tile.queries,
                N=tile.keys,
                num_warps=tile.warps,
                num_stages=tile.stages,
                **({"maxnreg": tile.registers} if tile.registers else {}),
            )


class _Attended(torch.autograd.Function):
    """Both ways. The one back of short sequences needs no output: who sees all keys finds what it would be read for."""

    @staticmethod
    def forward(ctx: Any, qkv_T3HK: Tensor, owed_3D: Tensor | None, work: _Work, tiles: AttentionTiles) -> Tensor:  # noqa: ANN401
        total, _, heads, width = qkv_T3HK.shape
        y_THK, sums_HT = qkv_T3HK.new_empty(total, heads, width), qkv_T3HK.new_empty(heads, total, dtype=torch.float32)
        kernel = long.forward if tiles.queries else short.forward
        work.launch(kernel, tiles.forward, tiles.forward.queries, qkv_T3HK, y_THK, sums_HT)
        ctx.save_for_backward(qkv_T3HK, sums_HT, *([y_THK] if tiles.queries else []))
        ctx.work, ctx.tiles, ctx.owed = work, tiles, None if owed_3D is None else owed_3D.dtype
        return y_THK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_THK: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        qkv_T3HK, sums_HT, *y = ctx.saved_tensors
        work, tiles = ctx.work, ctx.tiles
        dy_THK, dqkv_T3HK = dy_THK.contiguous(), torch.empty_like(qkv_T3HK)
        owed = work.owed(qkv_T3HK, tiles)
        written = dy_THK, dqkv_T3HK, owed
        if tiles.queries:
            known = sums_HT, torch.empty_like(sums_HT), *written
            work.launch(long_back.back_to_queries, tiles.queries, tiles.queries.queries, qkv_T3HK, *known, *y)
            work.launch(long_back.back_to_keys, tiles.back, tiles.back.keys, qkv_T3HK, *known)
        else:
            work.launch(short.back, tiles.back, work.borders.longest, qkv_T3HK, sums_HT, *written)
        return dqkv_T3HK, summed(owed, ctx.owed).flatten() if work.owes else None, None, None
