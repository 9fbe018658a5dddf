"""Blocks for our kernels between products: each candidate is timed on the states of a step, and the fastest named.

    python -m bench.kernels.kernel_times
    python -m bench.kernels.kernel_times --width 1024 --inner 4096 --tokens 32768
    python -m bench.kernels.kernel_times --device cpu --tokens 64 --width 32 --inner 64     (a check, where Triton interprets)

What arrives: the sizes of a network. What leaves: microseconds and GB/s, where a byte counts once for every pass that
the kernel makes over memory. What never happens here: a choice. `launch.py` chooses, by the figures that stand here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from bench.kernels.attention import seconds
from unmask.nets.kernels.launch import power_of_two
from unmask.nets.kernels.triton import gelu as gelu_module
from unmask.nets.kernels.triton import norm as norm_module

REPEATS = 20


@dataclass(frozen=True)
class Block:
    """How a kernel is laid over a matrix: rows that a program holds, its warps, how many blocks are on their way at
    once, and programs for each multiprocessor.
    """

    rows: int
    warps: int
    stages: int
    per_core: int


BLOCKS = tuple(Block(*sizes) for sizes in product((1, 2), (1, 2, 4), (1, 2, 3), (2, 4, 6, 8, 16, 32)))


@dataclass(frozen=True)
class Work:
    """A kernel with its arguments, what it is told, how many columns a program takes, and the bytes it moves."""

    name: str
    kernel: Any
    arguments: tuple[Any, ...]
    constants: dict[str, int | bool]
    columns: int
    moved: int


def main() -> None:
    wish = _wishes()
    device = torch.device(wish.device)
    cores = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    print(f"{wish.tokens:,} tokens, width {wish.width}, inner {wish.inner}, dropout {wish.dropout}\n")
    print(f"{'kernel':20}{'rows':>5}{'warps':>6}{'stages':>7}{'a core':>7}{'us':>9}{'GB/s':>8}")
    for work in _works(wish, device, cores * max(block.per_core for block in BLOCKS)):
        if wish.only not in work.name:
            continue
        lines: list[tuple[float, str]] = []
        for block in BLOCKS if device.type == "cuda" else BLOCKS[:1]:
            took = 1e6 * seconds(_turn(work, block, cores), device, REPEATS)
            what = f"{work.name:20}{block.rows:5}{block.warps:6}{block.stages:7}{block.per_core:7}"
            lines.append((took, f"{what}{took:9.1f}{work.moved / took / 1e3:8.0f}"))
        for _, line in sorted(lines)[: wish.best]:
            print(line, flush=True)
        print()


def _turn(work: Work, block: Block, cores: int) -> Callable[[], object]:
    """One launch."""
    width = work.constants["WIDTH"]
    across = -(-width // work.columns)
    down = max(1, cores * block.per_core // across)
    told = {"ROWS": block.rows, "BLOCK": work.columns, "num_warps": block.warps}
    if "STAGES" in work.kernel.arg_names:
        told["STAGES"] = block.stages
    return lambda: work.kernel[down, across](*work.arguments, **work.constants, **told)


def _works(wish: argparse.Namespace, device: torch.device, programs: int) -> Iterator[Work]:
    tokens, width, inner, rate = wish.tokens, wish.width, wish.inner, wish.dropout

    def states(columns: int) -> Tensor:
        return torch.randn(tokens, columns, device=device, dtype=torch.bfloat16)

    x, y, grad, again, out, dx, dy = (states(width) for _ in range(7))
    bias, gamma, beta = torch.randn(3, width, device=device)
    mean, rstd = torch.ones(2, tokens, device=device)
    seed = torch.ones(1, dtype=torch.int64, device=device)
    sums = torch.empty(programs, 3, max(width, inner), device=device)
    norm = {"WIDTH": width, "DROPS": rate > 0}
    one = x.nbytes
    ahead = (x, y, bias, gamma, beta, seed, out, mean, rstd, tokens, rate, 1e-12)
    yield Work("add_norm_forward", norm_module.add_norm_forward, ahead, norm, power_of_two(width), 3 * one)
    back = (grad, again, x, y, bias, gamma, seed, mean, rstd, dx, dy, sums, tokens, rate)
    two = {**norm, "TWO": True}
    passes = 6 if rate else 5
    yield Work("add_norm_backward", norm_module.add_norm_backward, back, two, power_of_two(width), passes * one)
    bent, wide, dwide, bias = states(inner), states(inner), states(inner), torch.randn(inner, device=device)
    gelu = {"WIDTH": inner, "TANH": False}
    block = min(power_of_two(inner), 1024)
    ahead = (wide, bias, bent, tokens)
    yield Work("bias_gelu_forward", gelu_module.bias_gelu_forward, ahead, gelu, block, 2 * wide.nbytes)
    back = (bent, wide, bias, dwide, sums, tokens)
    yield Work("bias_gelu_backward", gelu_module.bias_gelu_backward, back, gelu, block, 3 * wide.nbytes)


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, usual in (("tokens", 65_536), ("width", 768), ("inner", 3072), ("best", 6)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--only", default="", help="kernels with this in their names")
    parser.add_argument("--dropout", type=float, default=0.1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
