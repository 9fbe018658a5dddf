"""Forward pass of attention over sequences of any length: tiles of queries and keys, running softmax.

Stores the output and the base-2 logarithm of each softmax sum; scores are never written to memory.

Shapes: P queries, T tokens that are keys and values, H heads, K width of a head, M queries of a tile, N keys of a tile.
Tensors: q_PHK, kv_T2HK and their gradients, y_PHK and its gradient, sums_HP, dots_HP (sum of output times gradient).
`asks` are the offsets of the queries of each sequence, `offsets` those of its keys. If all tokens are queries, both are
the same, and queries, keys and values share a tensor; rows are `QUERY` and `KEY` apart. With a query subset (`SOME`), a
sequence may have any number of queries, and its programs loop over tiles.
Products times `scale` are scores; a share `rate` of the weights is dropped.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.math import LOG2E

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

LOWEST = tl.constexpr(-1e30)
"""Below every score, yet a number: the difference of two of them is 0."""


@triton.jit
def attention_mask(query, key, length, reach, SIGHT: tl.constexpr):
    """Which keys of a sequence each query attends to; both are indices in it, of broadcastable shapes."""
    hit = key < length
    if SIGHT == "past":
        hit = hit & (key <= query)
    if SIGHT == "near":
        hit = hit & (key - query <= reach) & (query - key <= reach)
    return hit


@triton.jit
def query_seeds(draws, origin, query, DROPS: tl.constexpr):
    """Dropout seeds of queries, with dropout. `origin`: the number of tokens before the sequence, all earlier heads
    included.
    """
    return tl.load(draws + origin + query) if DROPS else query


@triton.jit
def key_seeds(draws, ground, first, DROPS: tl.constexpr, N: tl.constexpr):
    """Dropout seeds of a tile of keys, stored after those of all queries."""
    return tl.load((draws + ground + first) + tl.arange(0, N)) if DROPS else tl.zeros([N], tl.int32)


@triton.jit
def dropout_mask(one_M, other_N, rate):
    """Which pairs dropout keeps: by the product, modulo 2^32, of the seeds of query and key (decision 0023)."""
    product_MN = one_M[:, None] * other_N[None, :]
    return product_MN.to(tl.uint32, bitcast=True) >= tl.cast(rate * 4294967296.0, tl.uint32)


@triton.jit
def apply_dropout(weight, left, rate):
    """Weights that dropout keeps. `rate * 0.0` is a zero unknown to the compiler; with a constant one it would round
    first and select among packed halves, at twice the instructions.
    """
    return tl.where(left, weight, rate * 0.0)


@triton.jit
def load_rows(base, place, length, STRIDE: tl.constexpr, WIDTH: tl.constexpr):
    """One row of `WIDTH` numbers for each index in a sequence; zeros after its end."""
    column = tl.arange(0, WIDTH)
    return tl.load(base + place[:, None] * STRIDE + column[None, :], mask=place[:, None] < length, other=0.0)


@triton.jit
def store_rows(base, value, place, length, STRIDE: tl.constexpr, WIDTH: tl.constexpr):
    """Store one row of `WIDTH` numbers for each index in a sequence."""
    column = tl.arange(0, WIDTH)
    to = base + place[:, None] * STRIDE + column[None, :]
    tl.store(to, value.to(base.dtype.element_ty), mask=place[:, None] < length)


@triton.jit
def sequence_bounds(offsets, sequence):
    """Where a sequence begins, and how long it is."""
    start = tl.load(offsets + sequence)
    return start, tl.load(offsets + sequence + 1) - start


@triton.jit
def program_tile(offsets, tiles, HEADS: tl.constexpr):
    """The tile, head and sequence of this program, with the sequence's start and length.

    Tiles of a head run concurrently and share their reads.
    """
    number = tl.program_id(0)
    tile, head, sequence = number % tiles, number // tiles % HEADS, number // tiles // HEADS
    start, length = sequence_bounds(offsets, sequence)
    return tile, head, sequence, start, length


@triton.jit
def key_range(first, length, reach, SIGHT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """The first key of a tile of queries, the first key that needs a mask, and the end."""
    begin, hidden, end = 0, length // N * N, length
    if SIGHT == "past":
        hidden, end = first // N * N, tl.minimum(first + M, length)
    if SIGHT == "near":
        begin = tl.maximum(first - reach, 0) // N * N
        hidden, end = begin, tl.minimum(first + M + reach, length)
    return begin, hidden, end


@triton.jit
def _accumulate_output(y_MK, sum_M, peak_M, q_MK, kv, at, query_M, length, reach, scale, one_M, other_N, rate,
           HEADS: tl.constexpr, WIDTH: tl.constexpr, KEY: tl.constexpr, SIGHT: tl.constexpr, DROPS: tl.constexpr,
           HIDES: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """Add one tile of keys to the running softmax and output of a tile of queries."""
    key_N = at + tl.arange(0, N)
    k_NK = load_rows(kv, key_N, length, KEY, WIDTH)
    v_NK = load_rows(kv + HEADS * WIDTH, key_N, length, KEY, WIDTH)
    score_MN = tl.dot(q_MK, tl.trans(k_NK), input_precision="ieee")
    if HIDES:
        score_MN = tl.where(
            attention_mask(query_M[:, None], key_N[None, :], length, reach, SIGHT), score_MN, float("-inf")
        )
    higher_M = tl.maximum(peak_M, tl.max(score_MN, 1) * scale * LOG2E)
    weight_MN = tl.exp2(score_MN * (scale * LOG2E) - higher_M[:, None])
    shrink_M = tl.exp2(peak_M - higher_M)
    sum_M = sum_M * shrink_M + tl.sum(weight_MN, 1)
    if DROPS:
        weight_MN = apply_dropout(weight_MN, dropout_mask(one_M, other_N, rate), rate)
    y_MK = tl.dot(weight_MN.to(v_NK.dtype), v_NK, y_MK * shrink_M[:, None], input_precision="ieee")
    return y_MK, sum_M, higher_M


@triton.jit
def _forward_tile(first, q, kv, y, sums, draws, origin, ground, count, length, reach, scale, rate,
          HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr, SIGHT: tl.constexpr,
          DROPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """The output of a tile of queries. Key seeds are loaded one iteration before they are used, in registers."""
    query_M = first + tl.arange(0, M)
    q_MK = load_rows(q, query_M, count, QUERY, WIDTH)
    y_MK = tl.zeros([M, WIDTH], tl.float32)
    sum_M, peak_M = tl.zeros([M], tl.float32), tl.full([M], LOWEST, tl.float32)
    begin, hidden, end = key_range(first, length, reach, SIGHT, M, N)
    one_M = query_seeds(draws, origin, query_M, DROPS)
    other_N = key_seeds(draws, ground, begin, DROPS, N)
    for at in range(begin, hidden, N):
        y_MK, sum_M, peak_M = _accumulate_output(y_MK, sum_M, peak_M, q_MK, kv, at, query_M, length, reach, scale,
            one_M, other_N, rate, HEADS, WIDTH, KEY, SIGHT, DROPS, False, N)  # fmt: skip
        other_N = key_seeds(draws, ground, at + N, DROPS, N)
    for at in range(hidden, end, N):
        y_MK, sum_M, peak_M = _accumulate_output(y_MK, sum_M, peak_M, q_MK, kv, at, query_M, length, reach, scale,
            one_M, other_N, rate, HEADS, WIDTH, KEY, SIGHT, DROPS, True, N)  # fmt: skip
        other_N = key_seeds(draws, ground, at + N, DROPS, N)
    sum_M = tl.where(query_M < count, sum_M, 1.0)  # nothing is near what stands behind the end
    store_rows(y, y_MK / (sum_M * (1.0 - rate))[:, None], query_M, count, HEADS * WIDTH, WIDTH)
    tl.store(sums + origin + query_M, peak_M + tl.log2(sum_M), mask=query_M < count)


@triton.jit(do_not_specialize=["total", "longest", "reach"])
def forward(q, kv, asks, offsets, draws, y, sums, total, longest, reach, scale, rate,
            HEADS: tl.constexpr, WIDTH: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr, SOME: tl.constexpr,
            SIGHT: tl.constexpr, DROPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):  # fmt: skip
    """The output of the queries of a sequence, tile by tile."""
    tiles = tl.cdiv(longest, M)
    tile, head, sequence, asked, count = program_tile(asks, tiles, HEADS)
    start, length = sequence_bounds(offsets, sequence)
    if tile * M >= count:
        return
    origin, ground = head * total + asked, HEADS * total + start
    q, kv = q + asked.to(tl.int64) * QUERY + head * WIDTH, kv + start.to(tl.int64) * KEY + head * WIDTH
    y = y + asked.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH
    if SOME:
        for first in range(tile * M, count, tiles * M):
            _forward_tile(first, q, kv, y, sums, draws, origin, ground, count, length, reach, scale, rate,
                  HEADS, WIDTH, QUERY, KEY, SIGHT, DROPS, M, N)  # fmt: skip
    else:
        _forward_tile(tile * M, q, kv, y, sums, draws, origin, ground, count, length, reach, scale, rate,
              HEADS, WIDTH, QUERY, KEY, SIGHT, DROPS, M, N)  # fmt: skip
