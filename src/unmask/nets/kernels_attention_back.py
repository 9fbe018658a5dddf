"""The way back of attention over sequences of any length: one kernel for queries, one for keys and values.

What arrives: what the way ahead left, and the gradient of its output. What leaves: the three parts of one gradient.
What never happens here: a sum that two programs add to. So scores are computed twice, once from either side.

Shapes and names are those of `kernels_attention_long.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels_attention_long import (
    LOG2E,
    coins,
    keys_seen,
    left_in,
    of_keys,
    of_queries,
    put,
    rows,
    seen,
    task,
)

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"


@triton.jit
def _queries_seeing(first, length, reach, SIGHT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Where the queries of a tile of keys begin, from where on each sees all of the tile, and where they end.

    Behind the end of a sequence queries and their gradients are zeros, and keys are not kept: neither need be hidden.
    """
    begin, open, end = 0, 0, length
    if SIGHT == "past":
        begin, open = first // M * M, tl.minimum(tl.cdiv(first + N - 1, M) * M, length)
    if SIGHT == "near":
        begin, end = tl.maximum(first - reach, 0) // M * M, tl.minimum(first + N + reach, length)
        open = end
    return begin, open, end


@triton.jit
def weighed(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length, reach, scale, one_M, other_N, rate,
            SIGHT: tl.constexpr, DROPS: tl.constexpr, HIDES: tl.constexpr):  # fmt: skip
    """Weights once more, those of them that dropout left in, and the gradient of all; nothing is scaled up yet."""
    score_MN = tl.dot(q_MK, tl.trans(k_NK), input_precision="ieee")
    weight_MN = tl.exp2(score_MN * (scale * LOG2E) - sum_M[:, None])
    if HIDES:
        weight_MN = tl.where(seen(query_M[:, None], key_N[None, :], length, reach, SIGHT), weight_MN, 0.0)
    dweight_MN = tl.dot(dy_MK, tl.trans(v_NK), input_precision="ieee")
    heard_MN = weight_MN
    if DROPS:
        left_MN = coins(one_M, other_N, rate)
        heard_MN = left_in(weight_MN, left_MN, rate)
        dweight_MN = tl.where(left_MN, dweight_MN, 0.0)
    return weight_MN, heard_MN.to(dy_MK.dtype), dweight_MN


@triton.jit
def sum_up(owed, value_RK, slot, head, part, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """Leave the sum over a tile where no other program does: what the bias of the projection is owed by this tile.

    The slot `sequence + start // R + tile` is that of one tile of R tokens alone: a sequence of n tokens has no more
    tiles than borders of R that it crosses, and one.
    """
    at = (slot.to(tl.int64) * 3 + part) * (HEADS * WIDTH) + head * WIDTH
    tl.store(owed + at + tl.arange(0, WIDTH), tl.sum(value_RK, 0))


@triton.jit
def _to_queries(dq_MK, q_MK, dy_MK, sum_M, dot_M, base, at, query_M, length, reach, scale, one_M, other_N, rate,
                HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
                HIDES: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """The gradient of the queries so far, and what comes to it from one more tile of keys."""
    key_N = at + tl.arange(0, N)
    k_NK = rows(base + HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    v_NK = rows(base + 2 * HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    weight_MN, _, dweight_MN = weighed(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length, reach, scale, one_M,
                                       other_N, rate, SIGHT, DROPS, HIDES)  # fmt: skip
    dscore_MN = weight_MN * (dweight_MN - dot_M[:, None])
    return tl.dot(dscore_MN.to(k_NK.dtype), k_NK, dq_MK, input_precision="ieee")


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def back_to_queries(qkv, offsets, draws, sums, dots, dy, dqkv, owed, y, total, longest, reach, scale, rate,
                    HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
                    OWES: tl.constexpr, M: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """The gradient of a tile of queries; on the way, what the other kernel needs to know of each of them."""
    tile, head, sequence, start, length = task(offsets, tl.cdiv(longest, M), HEADS)
    first = tile * M
    if first >= length:
        return
    origin, ground = head * total + start, HEADS * total + start
    outer = start.to(tl.int64) * (3 * HEADS * WIDTH) + head * WIDTH
    inner = start.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
    query_M = first + tl.arange(0, M)
    q_MK = rows(qkv + outer, query_M, length, 3 * HEADS * WIDTH, WIDTH)
    dy_MK = rows(dy + inner, query_M, length, HEADS * WIDTH, WIDTH)
    y_MK = rows(y + inner, query_M, length, HEADS * WIDTH, WIDTH)
    # What is left in is scaled up once, at the end; so this is scaled down.
    dot_M = tl.sum(y_MK.to(tl.float32) * dy_MK.to(tl.float32), 1) * (1.0 - rate)
    tl.store(dots + origin + query_M, dot_M, mask=query_M < length)
    sum_M = tl.load(sums + origin + query_M, mask=query_M < length, other=0.0)
    dq_MK = tl.zeros([M, WIDTH], tl.float32)
    begin, hidden, end = keys_seen(first, length, reach, SIGHT, M, N)
    one_M = of_queries(draws, origin, query_M, DROPS)
    other_N = of_keys(draws, ground, begin, DROPS, N)
    for at in range(begin, hidden, N):
        dq_MK = _to_queries(dq_MK, q_MK, dy_MK, sum_M, dot_M, qkv + outer, at, query_M, length, reach, scale, one_M,
                            other_N, rate, HEADS, WIDTH, SIGHT, DROPS, False, N)  # fmt: skip
        other_N = of_keys(draws, ground, at + N, DROPS, N)
    for at in range(hidden, end, N):
        dq_MK = _to_queries(dq_MK, q_MK, dy_MK, sum_M, dot_M, qkv + outer, at, query_M, length, reach, scale, one_M,
                            other_N, rate, HEADS, WIDTH, SIGHT, DROPS, True, N)  # fmt: skip
        other_N = of_keys(draws, ground, at + N, DROPS, N)
    dq_MK *= scale / (1.0 - rate)
    put(dqkv + outer, dq_MK, query_M, length, 3 * HEADS * WIDTH, WIDTH)
    if OWES:
        sum_up(owed, dq_MK, sequence + start // M + tile, head, 0, HEADS, WIDTH)


@triton.jit
def _to_keys(dk_NK, dv_NK, k_NK, v_NK, base, dy, sums, dots, at, key_N, length, reach, scale, draws, origin,
             other_N, rate, HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
             HIDES: tl.constexpr, M: tl.constexpr):  # fmt: skip
    """The gradients of keys and values so far, and what comes to them from one more tile of queries."""
    query_M = at + tl.arange(0, M)
    q_MK = rows(base, query_M, length, 3 * HEADS * WIDTH, WIDTH)
    dy_MK = rows(dy, query_M, length, HEADS * WIDTH, WIDTH)
    sum_M = tl.load(sums + origin + query_M, mask=query_M < length, other=0.0)
    dot_M = tl.load(dots + origin + query_M, mask=query_M < length, other=0.0)
    one_M = of_queries(draws, origin, query_M, DROPS)
    weight_MN, heard_MN, dweight_MN = weighed(q_MK, k_NK, v_NK, dy_MK, sum_M, query_M, key_N, length, reach, scale,
                                              one_M, other_N, rate, SIGHT, DROPS, HIDES)  # fmt: skip
    dv_NK = tl.dot(tl.trans(heard_MN), dy_MK, dv_NK, input_precision="ieee")
    dscore_MN = (weight_MN * (dweight_MN - dot_M[:, None])).to(q_MK.dtype)
    return tl.dot(tl.trans(dscore_MN), q_MK, dk_NK, input_precision="ieee"), dv_NK


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def back_to_keys(qkv, offsets, draws, sums, dots, dy, dqkv, owed, total, longest, reach, scale, rate,
                 HEADS: tl.constexpr, WIDTH: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
                 OWES: tl.constexpr, M: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """The gradients of a tile of keys and their values."""
    tile, head, sequence, start, length = task(offsets, tl.cdiv(longest, N), HEADS)
    first = tile * N
    if first >= length:
        return
    origin, ground = head * total + start, HEADS * total + start
    outer = start.to(tl.int64) * (3 * HEADS * WIDTH) + head * WIDTH
    base, dy = qkv + outer, dy + start.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
    key_N = first + tl.arange(0, N)
    k_NK = rows(base + HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    v_NK = rows(base + 2 * HEADS * WIDTH, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    dk_NK, dv_NK = tl.zeros([N, WIDTH], tl.float32), tl.zeros([N, WIDTH], tl.float32)
    other_N = of_keys(draws, ground, first, DROPS, N)
    begin, open, end = _queries_seeing(first, length, reach, SIGHT, M, N)
    if SIGHT != "full":
        for at in range(begin, open, M):
            dk_NK, dv_NK = _to_keys(dk_NK, dv_NK, k_NK, v_NK, base, dy, sums, dots, at, key_N, length, reach, scale,
                                    draws, origin, other_N, rate, HEADS, WIDTH, SIGHT, DROPS, True,
                                    M)  # fmt: skip
    if SIGHT != "near":
        for at in range(open, end, M):
            dk_NK, dv_NK = _to_keys(dk_NK, dv_NK, k_NK, v_NK, base, dy, sums, dots, at, key_N, length, reach, scale,
                                    draws, origin, other_N, rate, HEADS, WIDTH, SIGHT, DROPS, False,
                                    M)  # fmt: skip
    to = dqkv + outer + HEADS * WIDTH
    dk_NK, dv_NK = dk_NK * (scale / (1.0 - rate)), dv_NK / (1.0 - rate)
    put(to, dk_NK, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    put(to + HEADS * WIDTH, dv_NK, key_N, length, 3 * HEADS * WIDTH, WIDTH)
    if OWES:
        slot, inside_N1 = sequence + start // N + tile, (key_N < length)[:, None]
        sum_up(owed, tl.where(inside_N1, dk_NK, 0.0), slot, head, 1, HEADS, WIDTH)
        sum_up(owed, tl.where(inside_N1, dv_NK, 0.0), slot, head, 2, HEADS, WIDTH)
