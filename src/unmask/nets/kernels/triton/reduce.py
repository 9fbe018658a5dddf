"""Column sums over rows in a program's loop: partial sums in registers, reduced once after the loop.

The loop has no synchronization between threads. Blocks of 1,024 columns and more have all rows of a column in one
thread, so they are summed at once; in narrower ones each row has its own sums until the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unmask.nets.kernels.launch import device_of

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

PARTS, COLUMNS, WARPS = 512, 16, 8
"""What a program adds up at once: few columns, so that there are enough programs for a narrow network, too; and as many
parts as there are usually, because a program that goes on to the next ones waits for memory each time."""


@triton.jit
def zero_partials(ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Zeros."""
    HIGH: tl.constexpr = ROWS if BLOCK < 1024 else 1
    return tl.zeros([HIGH, BLOCK], tl.float32)


@triton.jit
def accumulate(sums, x_RD):
    """The sums with one more block."""
    if sums.shape[0] == x_RD.shape[0]:
        sums += x_RD
    else:
        sums += tl.sum(x_RD, 0, keep_dims=True)
    return sums


@triton.jit(do_not_specialize=["parts"])
def reduce_partials(parts_ptr, out_ptr, parts, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums over parts; a program has some columns of all of them."""
    at_D = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums_RD = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, parts, ROWS):
        part_R = start + tl.arange(0, ROWS)
        seen_RD = (part_R < parts)[:, None] & (at_D < width)[None, :]
        sums_RD += tl.load(parts_ptr + part_R[:, None].to(tl.int64) * width + at_D[None, :], mask=seen_RD, other=0.0)
    tl.store(out_ptr + at_D, tl.sum(sums_RD, 0), mask=at_D < width)


def reduce_all(parts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The partial sums of all programs, added up. torch takes 14 us for so few and so short rows on an H200."""
    out = torch.empty(parts.shape[1:], dtype=dtype, device=parts.device)
    with device_of(parts):
        grid = (triton.cdiv(out.numel(), COLUMNS),)
        reduce_partials[grid](parts, out, len(parts), out.numel(), ROWS=PARTS, BLOCK=COLUMNS, num_warps=WARPS)
    return out
