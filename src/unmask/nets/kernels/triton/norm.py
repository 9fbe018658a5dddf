"""Kernels of a branch of a post-norm block: bias, dropout, residual sum and norm in one pass, and its gradient in one.

No dropout mask is stored: both passes derive it from the same seed and index. Parameter gradients are partial sums, one
row for each program. Every program loops over blocks of ROWS whole rows, with STAGES loads in flight. Arithmetic is
float32.

Shapes: R rows of a block, D width (WIDTH; BLOCK is the next power of two).
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.math import keep_mask
from unmask.nets.kernels.triton.reduce import accumulate, zero_partials


@triton.jit(do_not_specialize=["rows"])
def add_norm_forward(
    x_ptr, y_ptr, bias_ptr, gamma_ptr, beta_ptr, seed_ptr, out_ptr, mean_ptr, rstd_ptr, rows, rate, epsilon,
    WIDTH: tl.constexpr, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """States = norm(x + drop(y + bias)); the mean and one over the deviation of each row are kept."""
    at_D = tl.arange(0, BLOCK)
    inside_D = at_D < WIDTH
    bias_D = tl.load(bias_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    gamma_D = tl.load(gamma_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    beta_D = tl.load(beta_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    for start in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row_R = start + tl.arange(0, ROWS)
        at_RD = row_R.to(tl.int64)[:, None] * WIDTH + at_D[None, :]
        seen_RD = (row_R < rows)[:, None] & inside_D[None, :]
        y_RD = tl.load(y_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32) + bias_D[None, :]
        if DROPS:
            y_RD = apply_dropout(y_RD, tl.load(seed_ptr), row_R[:, None] * WIDTH + at_D[None, :], rate)
        sum_RD = tl.load(x_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32) + y_RD
        hat_RD, mean_R, rstd_R = normalize(sum_RD, seen_RD, epsilon, WIDTH)
        tl.store(out_ptr + at_RD, hat_RD * gamma_D[None, :] + beta_D[None, :], mask=seen_RD)
        tl.store(mean_ptr + row_R, mean_R, mask=row_R < rows)
        tl.store(rstd_ptr + row_R, rstd_R, mask=row_R < rows)


@triton.jit(do_not_specialize=["rows"])
def add_norm_backward(
    grad_ptr, again_ptr, x_ptr, y_ptr, bias_ptr, gamma_ptr, seed_ptr, mean_ptr, rstd_ptr, dx_ptr, dy_ptr, sums_ptr,
    rows, rate,
    WIDTH: tl.constexpr, TWO: tl.constexpr, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Gradients of x and y; sums for gamma, beta and the bias. TWO: the gradient comes in two parts."""
    at_D = tl.arange(0, BLOCK)
    inside_D = at_D < WIDTH
    bias_D = tl.load(bias_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    gamma_D = tl.load(gamma_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    dgamma_D = zero_partials(ROWS, BLOCK)
    dbeta_D = zero_partials(ROWS, BLOCK)
    dbias_D = zero_partials(ROWS, BLOCK)
    for start in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row_R = start + tl.arange(0, ROWS)
        at_RD = row_R.to(tl.int64)[:, None] * WIDTH + at_D[None, :]
        seen_RD = (row_R < rows)[:, None] & inside_D[None, :]
        grad_RD = tl.load(grad_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32)
        if TWO:
            grad_RD += tl.load(again_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32)
        y_RD = tl.load(y_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32) + bias_D[None, :]
        if DROPS:
            left_RD = keep_mask(tl.load(seed_ptr), row_R[:, None] * WIDTH + at_D[None, :], rate)
            y_RD = tl.where(left_RD, y_RD * (1.0 / (1.0 - rate)), 0.0)
        sum_RD = tl.load(x_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32) + y_RD
        mean_R = tl.load(mean_ptr + row_R, mask=row_R < rows, other=0.0)
        rstd_R = tl.load(rstd_ptr + row_R, mask=row_R < rows, other=0.0)
        hat_RD = tl.where(seen_RD, (sum_RD - mean_R[:, None]) * rstd_R[:, None], 0.0)
        dgamma_D = accumulate(dgamma_D, grad_RD * hat_RD)
        dbeta_D = accumulate(dbeta_D, grad_RD)
        dsum_RD = norm_backward(grad_RD * gamma_D[None, :], hat_RD, rstd_R, seen_RD, WIDTH)
        tl.store(dx_ptr + at_RD, dsum_RD, mask=seen_RD)
        if DROPS:
            dsum_RD = tl.where(left_RD, dsum_RD * (1.0 / (1.0 - rate)), 0.0)
            tl.store(dy_ptr + at_RD, dsum_RD, mask=seen_RD)
        dbias_D = accumulate(dbias_D, dsum_RD)
    mine_ptr = sums_ptr + tl.program_id(0) * 3 * WIDTH + at_D
    tl.store(mine_ptr, tl.sum(dgamma_D, 0), mask=inside_D)
    tl.store(mine_ptr + WIDTH, tl.sum(dbeta_D, 0), mask=inside_D)
    tl.store(mine_ptr + 2 * WIDTH, tl.sum(dbias_D, 0), mask=inside_D)


@triton.jit
def apply_dropout(x, seed, place, rate):
    """Dropout: what is kept is scaled up. Its own gradient, too."""
    return tl.where(keep_mask(seed, place, rate), x * (1.0 / (1.0 - rate)), 0.0)


@triton.jit
def normalize(x_RD, seen_RD, epsilon, WIDTH: tl.constexpr):
    """Rows of mean 0 and variance 1; also the mean, and one over the deviation."""
    mean_R = tl.sum(x_RD, 1) / WIDTH
    apart_RD = tl.where(seen_RD, x_RD - mean_R[:, None], 0.0)
    rstd_R = tl.rsqrt(tl.sum(apart_RD * apart_RD, 1) / WIDTH + epsilon)
    return apart_RD * rstd_R[:, None], mean_R, rstd_R


@triton.jit
def norm_backward(dhat_RD, hat_RD, rstd_R, seen_RD, WIDTH: tl.constexpr):
    """The gradient of the input of a normalization, from that of its output."""
    along_R = tl.sum(dhat_RD * hat_RD, 1) / WIDTH
    mean_R = tl.sum(dhat_RD, 1) / WIDTH
    moved_RD = dhat_RD - mean_R[:, None] - hat_RD * along_R[:, None]
    return tl.where(seen_RD, moved_RD * rstd_R[:, None], 0.0)
