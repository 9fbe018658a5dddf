"""Attention over sequences that each fit into one tile of keys: forward and backward in one kernel each.

A program holds all queries and keys of its sequence, so there is no running softmax, and the backward pass computes
each score once. It loops over some heads of a sequence, so that the loads of the next head overlap.

Shapes and names are those of `attention_long.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.attention_backward import recompute_weights, store_bias_grad
from unmask.nets.kernels.triton.attention_long import (
    LOWEST,
    apply_dropout,
    attention_mask,
    dropout_mask,
    key_seeds,
    load_rows,
    program_tile,
    query_seeds,
    store_rows,
)
from unmask.nets.kernels.triton.math import LOG2E

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def forward(qkv, offsets, draws, y, sums, total, longest, reach, scale, rate,
            HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
            M: tl.constexpr, N: tl.constexpr, TURNS: tl.constexpr):  # fmt: skip
    """The output of a tile of queries over all keys of its sequence."""
    tile, turn, _, start, length = program_tile(offsets, tl.cdiv(longest, M), HEADS // TURNS)
    first, ground = tile * M, HEADS * total + start
    if first >= length:
        return
    query_M, key_N = first + tl.arange(0, M), tl.arange(0, N)
    for head in range(turn * TURNS, (turn + 1) * TURNS):
        origin, base = head * total + start, qkv + start.to(tl.int64) * (3 * HEADS * WIDTH) + head * WIDTH
        q_MK = load_rows(base, query_M, length, 3 * HEADS * WIDTH, WIDTH)
        k_NK = load_rows(base + HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        v_NK = load_rows(base + 2 * HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        score_MN = tl.dot(q_MK, tl.trans(k_NK), input_precision="ieee")
        score_MN = tl.where(
            attention_mask(query_M[:, None], key_N[None, :], length, reach, SIGHT), score_MN, float("-inf")
        )
        peak_M = tl.maximum(tl.max(score_MN, 1) * scale * LOG2E, LOWEST)
        weight_MN = tl.exp2(score_MN * (scale * LOG2E) - peak_M[:, None])
        sum_M = tl.where(query_M < length, tl.sum(weight_MN, 1), 1.0)  # nothing is near what stands behind the end
        if DROPS:
            one_M, other_N = query_seeds(draws, origin, query_M, DROPS), key_seeds(draws, ground, 0, DROPS, N)
            weight_MN = apply_dropout(weight_MN, dropout_mask(one_M, other_N, rate), rate)
        y_MK = tl.dot(weight_MN.to(v_NK.dtype), v_NK, input_precision="ieee") / (sum_M * (1.0 - rate))[:, None]
        store_rows(y + start.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH, y_MK, query_M, length, HEADS * WIDTH, WIDTH)
        tl.store(sums + origin + query_M, peak_M + tl.log2(sum_M), mask=query_M < length)


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def backward(qkv, offsets, draws, sums, dy, dqkv, owed, total, longest, reach, scale, rate,
         HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr, OWES: tl.constexpr,
         M: tl.constexpr, N: tl.constexpr, TURNS: tl.constexpr):  # fmt: skip
    """All gradients of a sequence that fits into one tile of queries and keys."""
    tl.static_assert(M == N)
    _, turn, sequence, start, length = program_tile(offsets, 1, HEADS // TURNS)
    ground = HEADS * total + start
    if length <= 0:
        if OWES:
            for head in range(turn * TURNS, (turn + 1) * TURNS):
                for part in range(3):
                    store_bias_grad(owed, tl.zeros([M, WIDTH], tl.float32), sequence, head, part, HEADS, WIDTH)
        return
    query_M, key_N = tl.arange(0, M), tl.arange(0, N)
    for head in range(turn * TURNS, (turn + 1) * TURNS):
        origin, outer = head * total + start, start.to(tl.int64) * (3 * HEADS * WIDTH) + head * WIDTH
        base, to = qkv + outer, dqkv + outer
        q_MK = load_rows(base, query_M, length, 3 * HEADS * WIDTH, WIDTH)
        k_NK = load_rows(base + HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        v_NK = load_rows(base + 2 * HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        inner = start.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
        dy_MK = load_rows(dy + inner, query_M, length, HEADS * WIDTH, WIDTH)
        sum_M = tl.load(sums + origin + query_M, mask=query_M < length, other=0.0)
        one_M, other_N = query_seeds(draws, origin, query_M, DROPS), key_seeds(draws, ground, 0, DROPS, N)
        weight_MN, heard_MN, dweight_MN = recompute_weights(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length,
            reach, scale, one_M, other_N, rate, SIGHT, DROPS, True)  # fmt: skip
        dv_NK = tl.dot(tl.trans(heard_MN), dy_MK, input_precision="ieee") / (1.0 - rate)
        store_rows(to + 2 * HEADS * WIDTH, dv_NK, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        if OWES:
            store_bias_grad(owed, dv_NK, sequence, head, 2, HEADS, WIDTH)
        dot_M = tl.sum(weight_MN * dweight_MN, 1)  # all keys are here, so the output need not be read
        dscore_MN = (weight_MN * (dweight_MN - dot_M[:, None])).to(q_MK.dtype)
        dq_MK = tl.dot(dscore_MN, k_NK, input_precision="ieee") * (scale / (1.0 - rate))
        store_rows(to, dq_MK, query_M, length, 3 * HEADS * WIDTH, WIDTH)
        if OWES:
            store_bias_grad(owed, dq_MK, sequence, head, 0, HEADS, WIDTH)
        dk_NK = tl.dot(tl.trans(dscore_MN), q_MK, input_precision="ieee") * (scale / (1.0 - rate))
        store_rows(to + HEADS * WIDTH, dk_NK, key_N, length, 3 * HEADS * WIDTH, WIDTH)
        if OWES:
            store_bias_grad(owed, dk_NK, sequence, head, 1, HEADS, WIDTH)
