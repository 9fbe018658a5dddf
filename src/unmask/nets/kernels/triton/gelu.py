"""Kernels of a bias and GELU, one forward and one backward pass.

Only the product without its bias is kept; the backward pass recomputes the activation. The bias gradient is a row of
partial sums for each program that takes rows.

Shapes: R rows of a block, F columns of a block (BLOCK) out of the inner width (WIDTH).
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.math import LOG2E, fast_exp, fast_reciprocal
from unmask.nets.kernels.triton.reduce import accumulate, zero_partials


@triton.jit(do_not_specialize=["rows"])
def bias_gelu_forward(
    y_ptr, bias_ptr, out_ptr, rows,
    WIDTH: tl.constexpr, TANH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """States = gelu(y + bias)."""
    at_F = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside_F = at_F < WIDTH
    bias_F = tl.load(bias_ptr + at_F, mask=inside_F, other=0.0).to(tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row_R = start + tl.arange(0, ROWS)
        at_RF = row_R.to(tl.int64)[:, None] * WIDTH + at_F[None, :]
        seen_RF = (row_R < rows)[:, None] & inside_F[None, :]
        x_RF = tl.load(y_ptr + at_RF, mask=seen_RF, other=0.0).to(tl.float32) + bias_F[None, :]
        share_RF, _slope_RF = gelu_derivative(x_RF, TANH)
        tl.store(out_ptr + at_RF, x_RF * share_RF, mask=seen_RF)


@triton.jit(do_not_specialize=["rows"])
def bias_gelu_backward(
    grad_ptr, y_ptr, bias_ptr, dy_ptr, sums_ptr, rows,
    WIDTH: tl.constexpr, TANH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of y; sums for the bias."""
    at_F = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside_F = at_F < WIDTH
    bias_F = tl.load(bias_ptr + at_F, mask=inside_F, other=0.0).to(tl.float32)
    dbias_F = zero_partials(ROWS, BLOCK)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row_R = start + tl.arange(0, ROWS)
        at_RF = row_R.to(tl.int64)[:, None] * WIDTH + at_F[None, :]
        seen_RF = (row_R < rows)[:, None] & inside_F[None, :]
        x_RF = tl.load(y_ptr + at_RF, mask=seen_RF, other=0.0).to(tl.float32) + bias_F[None, :]
        grad_RF = tl.load(grad_ptr + at_RF, mask=seen_RF, other=0.0).to(tl.float32)
        share_RF, slope_RF = gelu_derivative(x_RF, TANH)
        dy_RF = grad_RF * (share_RF + x_RF * slope_RF)
        tl.store(dy_ptr + at_RF, dy_RF, mask=seen_RF)
        dbias_F = accumulate(dbias_F, dy_RF)
    tl.store(sums_ptr + tl.program_id(0) * WIDTH + at_F, tl.sum(dbias_F, 0), mask=inside_F)


@triton.jit
def gelu_derivative(x, TANH: tl.constexpr):
    """gelu(x) / x, and its derivative with respect to x."""
    if TANH:
        # 0.5 (1 + tanh(u)) is the logistic function of 2u.
        share = fast_reciprocal(1.0 + fast_exp(-x * (1.5957691216057308 + 0.07135481627260025 * x * x)))
        slope = share * (1.0 - share) * (1.5957691216057308 + 0.21406444881780074 * x * x)
    else:
        # The normal distribution function by Abramowitz and Stegun 7.1.26, wrong by 5e-7 at most; its one exponential
        # is that of the density, which the gradient needs anyway.
        bell = tl.exp2(x * x * (-0.5 * LOG2E))
        t = fast_reciprocal(1.0 + 0.23164188 * tl.abs(x))
        over = 0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)
        tail = t * (0.127414796 + t * (-0.142248368 + t * over)) * bell
        share = tl.where(x < 0.0, tail, 1.0 - tail)
        slope = bell * 0.3989422804014327
    return share, slope
