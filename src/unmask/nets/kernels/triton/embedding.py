"""Embedding kernels: rows of up to three tables, their sum, norm and dropout in one pass, and the backward pass.

The backward pass adds gradients of tokens and positions to their rows atomically (float32). For deterministic sums it
stores them instead, and they are summed in a fixed order elsewhere. Gradients of the norm's parameters and of segments
are partial sums, one row for each program.

Shapes: R rows of a block, D width (WIDTH; BLOCK is the next power of two).
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.norm import apply_dropout, norm_backward, normalize
from unmask.nets.kernels.triton.reduce import accumulate, zero_partials


@triton.jit(do_not_specialize=["rows"])
def embed_forward(
    ids_ptr, position_ptr, segment_ptr, tokens_ptr, positions_ptr, segments_ptr, gamma_ptr, beta_ptr, seed_ptr,
    out_ptr, rows, rate, epsilon,
    WIDTH: tl.constexpr, SEGMENTS: tl.constexpr, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """States = drop(norm(token + position + segment))."""
    at_D = tl.arange(0, BLOCK)
    inside_D = at_D < WIDTH
    gamma_D = tl.load(gamma_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    beta_D = tl.load(beta_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row_R = start + tl.arange(0, ROWS)
        seen_RD = (row_R < rows)[:, None] & inside_D[None, :]
        token_RD, position_RD = _places(ids_ptr, position_ptr, row_R, row_R < rows, at_D, WIDTH)
        sum_RD = _read(tokens_ptr, token_RD, seen_RD) + _read(positions_ptr, position_RD, seen_RD)
        if SEGMENTS > 0:
            segment_RD = _segments(segment_ptr, row_R, row_R < rows, at_D, WIDTH, SEGMENTS)
            sum_RD += _read(segments_ptr, segment_RD, seen_RD)
        hat_RD, _mean_R, _rstd_R = normalize(sum_RD, seen_RD, epsilon, WIDTH)
        out_RD = hat_RD * gamma_D[None, :] + beta_D[None, :]
        if DROPS:
            out_RD = apply_dropout(out_RD, tl.load(seed_ptr), row_R[:, None] * WIDTH + at_D[None, :], rate)
        tl.store(out_ptr + row_R.to(tl.int64)[:, None] * WIDTH + at_D[None, :], out_RD, mask=seen_RD)


@triton.jit(do_not_specialize=["rows"])
def embed_backward(
    grad_ptr, again_ptr, ids_ptr, position_ptr, segment_ptr, tokens_ptr, positions_ptr, segments_ptr, gamma_ptr,
    seed_ptr, dtokens_ptr, dpositions_ptr, dsum_ptr, sums_ptr, rows, rate, epsilon,
    WIDTH: tl.constexpr, SEGMENTS: tl.constexpr, DROPS: tl.constexpr, TWO: tl.constexpr, ADDS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums for gamma, beta, all segments and the second of them; ADDS: gradients are added to the tables' rows."""
    at_D = tl.arange(0, BLOCK)
    inside_D = at_D < WIDTH
    gamma_D = tl.load(gamma_ptr + at_D, mask=inside_D, other=0.0).to(tl.float32)
    dgamma_D = zero_partials(ROWS, BLOCK)
    dbeta_D = zero_partials(ROWS, BLOCK)
    all_D = zero_partials(ROWS, BLOCK)
    second_D = zero_partials(ROWS, BLOCK)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row_R = start + tl.arange(0, ROWS)
        at_RD = row_R.to(tl.int64)[:, None] * WIDTH + at_D[None, :]
        seen_RD = (row_R < rows)[:, None] & inside_D[None, :]
        grad_RD = tl.load(grad_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32)
        if TWO:
            grad_RD += tl.load(again_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32)
        if DROPS:
            grad_RD = apply_dropout(grad_RD, tl.load(seed_ptr), row_R[:, None] * WIDTH + at_D[None, :], rate)
        token_RD, position_RD = _places(ids_ptr, position_ptr, row_R, row_R < rows, at_D, WIDTH)
        sum_RD = _read(tokens_ptr, token_RD, seen_RD) + _read(positions_ptr, position_RD, seen_RD)
        if SEGMENTS > 0:
            segment_RD = _segments(segment_ptr, row_R, row_R < rows, at_D, WIDTH, SEGMENTS)
            sum_RD += _read(segments_ptr, segment_RD, seen_RD)
        hat_RD, _mean_R, rstd_R = normalize(sum_RD, seen_RD, epsilon, WIDTH)
        dgamma_D = accumulate(dgamma_D, grad_RD * hat_RD)
        dbeta_D = accumulate(dbeta_D, grad_RD)
        dsum_RD = norm_backward(grad_RD * gamma_D[None, :], hat_RD, rstd_R, seen_RD, WIDTH)
        if ADDS:
            tl.atomic_add(dtokens_ptr + token_RD, dsum_RD, mask=seen_RD, sem="relaxed")
            tl.atomic_add(dpositions_ptr + position_RD, dsum_RD, mask=seen_RD, sem="relaxed")
        else:
            tl.store(dsum_ptr + at_RD, dsum_RD, mask=seen_RD)
        all_D = accumulate(all_D, dsum_RD)
        if SEGMENTS > 1:
            is_second_R = tl.load(segment_ptr + row_R, mask=row_R < rows, other=0) == 1
            second_D = accumulate(second_D, tl.where(is_second_R[:, None], dsum_RD, 0.0))
    mine_ptr = sums_ptr + tl.program_id(0) * 4 * WIDTH + at_D
    tl.store(mine_ptr, tl.sum(dgamma_D, 0), mask=inside_D)
    tl.store(mine_ptr + WIDTH, tl.sum(dbeta_D, 0), mask=inside_D)
    tl.store(mine_ptr + 2 * WIDTH, tl.sum(all_D, 0), mask=inside_D)
    tl.store(mine_ptr + 3 * WIDTH, tl.sum(second_D, 0), mask=inside_D)


@triton.jit
def _read(table_ptr, at_RD, seen_RD):
    """Rows of a table."""
    return tl.load(table_ptr + at_RD, mask=seen_RD, other=0.0).to(tl.float32)


@triton.jit
def _places(ids_ptr, position_ptr, row_R, real_R, at_D, WIDTH: tl.constexpr):
    """Where the rows of tokens and of positions lie in their tables."""
    token_R = tl.load(ids_ptr + row_R, mask=real_R, other=0)
    position_R = tl.load(position_ptr + row_R, mask=real_R, other=0)
    return token_R[:, None] * WIDTH + at_D[None, :], position_R[:, None] * WIDTH + at_D[None, :]


@triton.jit
def _segments(segment_ptr, row_R, real_R, at_D, WIDTH: tl.constexpr, SEGMENTS: tl.constexpr):
    """Where the rows of segments lie in their table; where there is one segment, all are of it."""
    segment_R = tl.load(segment_ptr + row_R, mask=real_R & (SEGMENTS > 1), other=0)
    return segment_R[:, None] * WIDTH + at_D[None, :]
