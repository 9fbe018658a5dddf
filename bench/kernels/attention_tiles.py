"""AttentionTiles for our own kernels of attention: each candidate is timed, and the fastest of each kernel named.

What arrives: the wishes of `attention.py`. What leaves: a table. What never happens here: a tile in place of another
kernel's: while one kernel's candidates are tried, the others keep the tiles of the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.attention import triton_attention
from unmask.nets.kernels.triton.attention_tiles import LONG_TILES, MAX_SHORT_SEQLEN, SHORT_TILES, AttentionTiles, Tile

Clock = Callable[[Callable[[], object]], float]
FORWARD = (
    *(
        Tile(queries, keys, warps, stages)
        for queries, keys, warps in ((128, 128, 8), (128, 64, 4))
        for stages in (2, 3)
    ),
    *(Tile(queries, keys, 4, stages) for queries, keys in ((64, 64), (64, 128)) for stages in (2, 3)),
    *(Tile(128, 64, 8, stages, registers=most) for stages in (2, 3, 4) for most in (None, 128)),
)
QUERIES = (
    *(Tile(128, 64, 8, stages, registers=most) for stages in (2, 3) for most in (None, 128)),
    *(Tile(64, 64, 4, stages, registers=most) for stages in (2, 3) for most in (None, 168)),
    *(Tile(64, 32, 4, 3, registers=most) for most in (None, 128)),
    *(Tile(*sizes) for sizes in ((128, 128, 8, 2), (64, 128, 4, 2), (128, 32, 4, 3), (128, 64, 4, 2))),
)
KEYS = (
    *(Tile(64, 64, 4, stages, registers=most) for stages in (1, 2, 3) for most in (None, 168)),
    *(Tile(128, 64, 8, stages) for stages in (1, 2)),
    *(Tile(*sizes) for sizes in ((128, 64, 4, 2), (64, 128, 8, 2), (128, 128, 8, 2), (64, 32, 4, 2), (128, 32, 4, 2))),
)
SHORT_FORWARD = (
    *(Tile(64, 128, 4, 1, registers=most) for most in (None, 128)),
    *(Tile(128, 128, warps, 1) for warps in (4, 8)),
    *(Tile(queries, 128, warps, 2, turns) for queries, warps in ((64, 4), (128, 8)) for turns in (2, 4, 6, 12)),
)
SHORT_BACK = (
    *(Tile(128, 128, 8, 1, turns, most) for turns in (1, 2) for most in (None, 128)),
    *(Tile(128, 128, 8, 2, turns) for turns in (2, 4, 6, 8, 12)),
    Tile(128, 128, 16, 1),
)


def sweep(wish: argparse.Namespace, device: torch.device, clock: Clock) -> None:
    """Print a table for every length; the clock says how many seconds a turn takes."""
    print(f"{wish.tokens:,} tokens, {wish.heads} heads of {wish.head}; dropout {wish.dropout}\n")
    print(f"{'rows':8}{'kernel':16}{'queries':>8}{'keys':>6}{'warps':>6}{'stages':>7}{'turns':>6}{'regs':>6}{'ms':>9}")
    for length in map(int, wish.lengths.split(",")):
        borders = PackedSequences.of(torch.arange(wish.tokens // length + 1) * length, device)
        total = length * borders.num_sequences
        qkv = torch.randn(total, 3, wish.heads, wish.head, device=device, dtype=torch.bfloat16)
        way = partial(triton_attention, sequences=borders, dropout=wish.dropout)
        for name, choices, forward in _kernels(wish.head, length):
            _best(f"{length:<8}{name:16}", [(tile, _turn(way, qkv, tiles, forward)) for tile, tiles in choices], clock)


def _kernels(head: int, length: int) -> Iterator[tuple[str, list[tuple[Tile, AttentionTiles]], bool]]:
    """The kernels for a length: a name, a candidate with what it works with, and whether it is one of the way ahead."""
    if length <= MAX_SHORT_SEQLEN:
        size, table = max(1 << (length - 1).bit_length(), 16), SHORT_TILES[head]
        table = AttentionTiles(table.forward.cut(size), table.back.cut(size))
        cut = partial(_cut, size=size)
        yield "short forward", [(tile, replace(table, forward=tile)) for tile in cut(SHORT_FORWARD)], True
        yield "short back", [(tile, replace(table, back=tile)) for tile in cut(SHORT_BACK)], False
    table = LONG_TILES[head]
    yield "forward", [(tile, replace(table, forward=tile)) for tile in FORWARD], True
    yield "back to queries", [(tile, replace(table, queries=tile)) for tile in QUERIES], False
    yield "back to keys", [(tile, replace(table, back=tile)) for tile in KEYS], False


def _cut(tiles: Iterable[Tile], size: int) -> list[Tile]:
    return list(dict.fromkeys(tile.cut(size) for tile in tiles))


def _turn(
    way: Callable[..., Tensor], qkv: Tensor, tiles: AttentionTiles, forward: bool
) -> Callable[[], Callable[[], object]]:
    """What makes the turn to be timed: the way ahead, or the whole way back."""

    def make() -> Callable[[], object]:
        if forward:
            return partial(way, qkv, tiles=tiles)
        leaf = qkv.detach().requires_grad_()
        y = way(leaf, tiles=tiles)
        return partial(torch.autograd.grad, y, leaf, torch.randn_like(y), retain_graph=True)

    return make


def _best(label: str, choices: list[tuple[Tile, Callable[[], Callable[[], object]]]], clock: Clock) -> None:
    """Print every candidate, and the fastest once more."""
    lines: list[tuple[float, str]] = []
    for tile, make in choices:
        sizes = f"{tile.queries:8}{tile.keys:6}{tile.warps:6}{tile.stages:7}{tile.turns:6}{tile.registers or '-':>6}"
        try:
            took = 1000 * clock(make())
        except Exception as reason:  # a tile that does not fit says so in many ways
            print(f"{label}{sizes}  {type(reason).__name__}"[:80], flush=True)
            continue
        lines.append((took, f"{label}{sizes}{took:9.3f}"))
        print(lines[-1][1], flush=True)
    if lines:
        print(f"{min(lines)[1]}  best\n", flush=True)
