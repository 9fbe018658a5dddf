"""Backward pass of attention over sequences of any length: one kernel for dq, one for dk and dv.

No two programs add to the same sum, so scores are computed twice, once in each kernel.
Shapes and names are those of `attention_long.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.attention_long import (
    apply_dropout,
    attention_mask,
    dropout_mask,
    key_range,
    key_seeds,
    load_rows,
    program_tile,
    query_seeds,
    sequence_bounds,
    store_rows,
)
from unmask.nets.kernels.triton.math import LOG2E

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"


@triton.jit
def _query_range(first, count, reach, SIGHT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """The first query that attends to a tile of keys, the first one that attends to all of it, and the last one.

    After the end of a sequence queries and their gradients are zeros, and keys are not stored: neither needs a mask.
    """
    begin, open, end = 0, 0, count
    if SIGHT == "past":
        begin, open = first // M * M, tl.minimum(tl.cdiv(first + N - 1, M) * M, count)
    if SIGHT == "near":
        begin, end = tl.maximum(first - reach, 0) // M * M, tl.minimum(first + N + reach, count)
        open = end
    return begin, open, end


@triton.jit
def recompute_weights(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length, reach, scale, one_M, other_N, rate,
            SIGHT: tl.constexpr, DROPS: tl.constexpr, HIDES: tl.constexpr):  # fmt: skip
    """Recomputed weights, those kept by dropout, and the gradient of all; none is rescaled yet."""
    score_MN = tl.dot(q_MK, tl.trans(k_NK), input_precision="ieee")
    weight_MN = tl.exp2(score_MN * (scale * LOG2E) - sum_M[:, None])
    if HIDES:
        weight_MN = tl.where(attention_mask(query_M[:, None], key_N[None, :], length, reach, SIGHT), weight_MN, 0.0)
    dweight_MN = tl.dot(dy_MK, tl.trans(v_NK), input_precision="ieee")
    heard_MN = weight_MN
    if DROPS:
        left_MN = dropout_mask(one_M, other_N, rate)
        heard_MN = apply_dropout(weight_MN, left_MN, rate)
        dweight_MN = tl.where(left_MN, dweight_MN, 0.0)
    return weight_MN, heard_MN.to(dy_MK.dtype), dweight_MN


@triton.jit
def store_bias_grad(owed, value_RK, slot, head, part, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """Store this tile's partial gradient of the qkv bias in a slot that no other program writes.

    Slot `sequence + start // R + tile` is unique for tiles of R tokens: a sequence has at most one tile more than
    multiples of R that it crosses.
    """
    at = (slot.to(tl.int64) * 3 + part) * (HEADS * WIDTH) + head * WIDTH
    tl.store(owed + at + tl.arange(0, WIDTH), tl.sum(value_RK, 0))


@triton.jit
def _accumulate_dq(dq_MK, q_MK, dy_MK, sum_M, dot_M, kv, at, query_M, length, reach, scale, one_M, other_N, rate,
                HEADS: tl.constexpr, WIDTH: tl.constexpr, KEY: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
                HIDES: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """Add the contribution of one tile of keys to dq."""
    key_N = at + tl.arange(0, N)
    k_NK = load_rows(kv, key_N, length, KEY, WIDTH)
    v_NK = load_rows(kv + HEADS * WIDTH, key_N, length, KEY, WIDTH)
    weight_MN, _, dweight_MN = recompute_weights(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length, reach,
        scale, one_M, other_N, rate, SIGHT, DROPS, HIDES)  # fmt: skip
    dscore_MN = weight_MN * (dweight_MN - dot_M[:, None])
    return tl.dot(dscore_MN.to(k_NK.dtype), k_NK, dq_MK, input_precision="ieee")


@triton.jit
def _dq_tile(first, q, kv, y, dy, dq, owed, slot, head, sums, dots, draws, origin, ground, count, length, reach, scale,
             rate, HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr,
             SIGHT: tl.constexpr, DROPS: tl.constexpr, OWES: tl.constexpr, M: tl.constexpr,
             N: tl.constexpr):  # fmt: skip
    """Dq of a tile of queries; stores the row sums (dots) that the other kernel needs."""
    query_M = first + tl.arange(0, M)
    q_MK = load_rows(q, query_M, count, QUERY, WIDTH)
    dy_MK = load_rows(dy, query_M, count, HEADS * WIDTH, WIDTH)
    y_MK = load_rows(y, query_M, count, HEADS * WIDTH, WIDTH)
    # The kept weights are rescaled once, at the end; so this is scaled down.
    dot_M = tl.sum(y_MK.to(tl.float32) * dy_MK.to(tl.float32), 1) * (1.0 - rate)
    tl.store(dots + origin + query_M, dot_M, mask=query_M < count)
    sum_M = tl.load(sums + origin + query_M, mask=query_M < count, other=0.0)
    dq_MK = tl.zeros([M, WIDTH], tl.float32)
    begin, hidden, end = key_range(first, length, reach, SIGHT, M, N)
    one_M = query_seeds(draws, origin, query_M, DROPS)
    other_N = key_seeds(draws, ground, begin, DROPS, N)
    for at in range(begin, hidden, N):
        dq_MK = _accumulate_dq(dq_MK, q_MK, dy_MK, sum_M, dot_M, kv, at, query_M, length, reach, scale, one_M,
                            other_N, rate, HEADS, WIDTH, KEY, SIGHT, DROPS, False, N)  # fmt: skip
        other_N = key_seeds(draws, ground, at + N, DROPS, N)
    for at in range(hidden, end, N):
        dq_MK = _accumulate_dq(dq_MK, q_MK, dy_MK, sum_M, dot_M, kv, at, query_M, length, reach, scale, one_M,
                            other_N, rate, HEADS, WIDTH, KEY, SIGHT, DROPS, True, N)  # fmt: skip
        other_N = key_seeds(draws, ground, at + N, DROPS, N)
    dq_MK *= scale / (1.0 - rate)
    store_rows(dq, dq_MK, query_M, count, QUERY, WIDTH)
    if OWES:
        store_bias_grad(owed, dq_MK, slot + first // M, head, 0, HEADS, WIDTH)


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def backward_dq(q, kv, asks, offsets, draws, sums, dots, dy, dq, dkv, owed, y, total, longest, reach, scale, rate,
                    HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr,
                    SOME: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr, OWES: tl.constexpr,
                    M: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """Dq of a sequence, tile by tile."""
    tiles = tl.cdiv(longest, M)
    tile, head, sequence, asked, count = program_tile(asks, tiles, HEADS)
    start, length = sequence_bounds(offsets, sequence)
    if tile * M >= count:
        return
    origin, ground, slot = head * total + asked, HEADS * total + start, sequence + asked // M
    outer, inner = asked.to(tl.int64) * QUERY + head * WIDTH, asked.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
    kv = kv + start.to(tl.int64) * KEY + head * WIDTH
    if SOME:
        for first in range(tile * M, count, tiles * M):
            _dq_tile(first, q + outer, kv, y + inner, dy + inner, dq + outer, owed, slot, head, sums, dots, draws,
                     origin, ground, count, length, reach, scale, rate, HEADS, WIDTH, QUERY, KEY, SIGHT, DROPS, OWES,
                     M, N)  # fmt: skip
    else:
        _dq_tile(tile * M, q + outer, kv, y + inner, dy + inner, dq + outer, owed, slot, head, sums, dots, draws,
                 origin, ground, count, length, reach, scale, rate, HEADS, WIDTH, QUERY, KEY, SIGHT, DROPS, OWES,
                 M, N)  # fmt: skip


@triton.jit
def _accumulate_dkv(dk_NK, dv_NK, k_NK, v_NK, q, dy, sums, dots, at, key_N, count, length, reach, scale, draws, origin,
             other_N, rate, HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, SIGHT: tl.constexpr,
             DROPS: tl.constexpr, HIDES: tl.constexpr, M: tl.constexpr):  # fmt: skip
    """Add the contribution of one tile of queries to dk and dv."""
    query_M = at + tl.arange(0, M)
    q_MK = load_rows(q, query_M, count, QUERY, WIDTH)
    dy_MK = load_rows(dy, query_M, count, HEADS * WIDTH, WIDTH)
    sum_M = tl.load(sums + origin + query_M, mask=query_M < count, other=0.0)
    dot_M = tl.load(dots + origin + query_M, mask=query_M < count, other=0.0)
    one_M = query_seeds(draws, origin, query_M, DROPS)
    weight_MN, heard_MN, dweight_MN = recompute_weights(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length,
        reach, scale, one_M, other_N, rate, SIGHT, DROPS, HIDES)  # fmt: skip
    dv_NK = tl.dot(tl.trans(heard_MN), dy_MK, dv_NK, input_precision="ieee")
    dscore_MN = (weight_MN * (dweight_MN - dot_M[:, None])).to(q_MK.dtype)
    return tl.dot(tl.trans(dscore_MN), q_MK, dk_NK, input_precision="ieee"), dv_NK


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def backward_dkv(q, kv, asks, offsets, draws, sums, dots, dy, dq, dkv, owed, total, longest, reach, scale, rate,
                 HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr,
                 SIGHT: tl.constexpr, DROPS: tl.constexpr, OWES: tl.constexpr, M: tl.constexpr,
                 N: tl.constexpr):  # fmt: skip
    """Dk and dv of a tile of keys."""
    tile, head, sequence, start, length = program_tile(offsets, tl.cdiv(longest, N), HEADS)
    asked, count = sequence_bounds(asks, sequence)
    first = tile * N
    if first >= length:
        return
    origin, ground = head * total + asked, HEADS * total + start
    outer = start.to(tl.int64) * KEY + head * WIDTH
    q, dy = q + asked.to(tl.int64) * QUERY + head * WIDTH, dy + asked.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
    key_N = first + tl.arange(0, N)
    k_NK = load_rows(kv + outer, key_N, length, KEY, WIDTH)
    v_NK = load_rows(kv + outer + HEADS * WIDTH, key_N, length, KEY, WIDTH)
    dk_NK, dv_NK = tl.zeros([N, WIDTH], tl.float32), tl.zeros([N, WIDTH], tl.float32)
    other_N = key_seeds(draws, ground, first, DROPS, N)
    begin, open, end = _query_range(first, count, reach, SIGHT, M, N)
    if SIGHT != "full":
        for at in range(begin, open, M):
            dk_NK, dv_NK = _accumulate_dkv(dk_NK, dv_NK, k_NK, v_NK, q, dy, sums, dots, at, key_N, count, length,
                reach, scale, draws, origin, other_N, rate, HEADS, WIDTH, QUERY, SIGHT, DROPS, True,
                                    M)  # fmt: skip
    if SIGHT != "near":
        for at in range(open, end, M):
            dk_NK, dv_NK = _accumulate_dkv(dk_NK, dv_NK, k_NK, v_NK, q, dy, sums, dots, at, key_N, count, length,
                reach, scale, draws, origin, other_N, rate, HEADS, WIDTH, QUERY, SIGHT, DROPS, False,
                                    M)  # fmt: skip
    dk_NK, dv_NK = dk_NK * (scale / (1.0 - rate)), dv_NK / (1.0 - rate)
    store_rows(dkv + outer, dk_NK, key_N, length, KEY, WIDTH)
    store_rows(dkv + outer + HEADS * WIDTH, dv_NK, key_N, length, KEY, WIDTH)
    if OWES:
        slot, inside_N1 = sequence + start // N + tile, (key_N < length)[:, None]
        store_bias_grad(owed, tl.where(inside_N1, dk_NK, 0.0), slot, head, 1, HEADS, WIDTH)
        store_bias_grad(owed, tl.where(inside_N1, dv_NK, 0.0), slot, head, 2, HEADS, WIDTH)
