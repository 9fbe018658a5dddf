"""Kernels over a vocabulary: cross-entropy of logits with its gradient (in place), and sampling of a token per row.

Probabilities are never written to memory. Rows may be longer than the vocabulary (STRIDE and VOCABULARY): the padding
does not count, and its gradient is 0. It is loaded nevertheless, so that loads stay aligned.

Shapes: P rows, V a block of the vocabulary (BLOCK), of which L lanes hold W neighbors each.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unmask.nets.kernels.triton.math import fast_exp
from unmask.nets.kernels.triton.reduce import accumulate, zero_partials

LANE = tl.constexpr(8)
"""Logits that one thread loads at once. A running softmax for each lane needs no word from other threads until the
end of a row; one for all of them would wait for the slowest at every block.
"""


@triton.jit
def cross_entropy_forward(
    logits_ptr, answers_ptr, loss_ptr, right_ptr, whole_ptr,
    VOCABULARY: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row a program: its loss, whether the answer is the likeliest (the first of equals), the log of the sum."""
    row = tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * STRIDE
    answer = tl.load(answers_ptr + row)
    asked = answer >= 0
    wanted = tl.load(row_ptr + answer, mask=asked, other=0.0).to(tl.float32)
    top_L, sum_L = _empty_lanes(BLOCK)
    beaten_L = tl.zeros([BLOCK // LANE], tl.int32)
    for start in range(0, VOCABULARY, BLOCK):
        at_LW = _lanes(start, BLOCK)
        x_LW = _load_logits(row_ptr, at_LW, VOCABULARY, STRIDE)
        top_L, sum_L = _update_lanes(top_L, sum_L, x_LW)
        beaten_L |= tl.max(((x_LW > wanted) | ((x_LW == wanted) & (at_LW < answer))).to(tl.int32), 1)
    top, total = _reduce_lanes(top_L, sum_L)
    whole = top + tl.log(total)
    tl.store(whole_ptr + row, whole)
    tl.store(loss_ptr + row, tl.where(asked, whole - wanted, 0.0))
    tl.store(right_ptr + row, (asked & (tl.max(beaten_L, 0) == 0)).to(tl.int8))


@triton.jit(do_not_specialize=["rows"])
def cross_entropy_backward(
    logits_ptr, answers_ptr, whole_ptr, scale_ptr, sums_ptr, rows,
    VOCABULARY: tl.constexpr, STRIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the sum of all losses times a scale, over the logits; sums of its columns, for a bias."""
    at_V = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr).to(tl.float32)
    sums = zero_partials(ROWS, BLOCK)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row_R = start + tl.arange(0, ROWS)
        at_RV = row_R.to(tl.int64)[:, None] * STRIDE + at_V[None, :]
        answer_R = tl.load(answers_ptr + row_R, mask=row_R < rows, other=-1)
        whole_R = tl.load(whole_ptr + row_R, mask=row_R < rows, other=0.0)
        held_RV = (row_R < rows)[:, None] & (at_V < STRIDE)[None, :]
        x_RV = tl.load(logits_ptr + at_RV, mask=held_RV, other=0.0).to(tl.float32)
        chance_RV = tl.where((at_V < VOCABULARY)[None, :], fast_exp(x_RV - whole_R[:, None]), 0.0)
        off_RV = tl.where(at_V[None, :] == answer_R[:, None], chance_RV - 1.0, chance_RV)
        grad_RV = tl.where((answer_R >= 0)[:, None], off_RV * scale, 0.0)
        tl.store(logits_ptr + at_RV, grad_RV, mask=held_RV)
        sums = accumulate(sums, grad_RV)
    tl.store(sums_ptr + tl.program_id(0) * VOCABULARY + at_V, tl.sum(sums, 0), mask=at_V < VOCABULARY)


@triton.jit
def sample_tokens_kernel(
    logits_ptr, chance_ptr, drawn_ptr,
    VOCABULARY: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row a program: the first token at which the running sum of probabilities passes the row's draw."""
    row = tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * STRIDE
    chance = tl.load(chance_ptr + row).to(tl.float32)
    top_L, sum_L = _empty_lanes(BLOCK)
    for start in range(0, VOCABULARY, BLOCK):
        x_LW = _load_logits(row_ptr, _lanes(start, BLOCK), VOCABULARY, STRIDE)
        top_L, sum_L = _update_lanes(top_L, sum_L, x_LW)
    top, total = _reduce_lanes(top_L, sum_L)
    reached = chance * total
    passed = chance * 0.0
    before_V = tl.zeros([BLOCK], tl.int32)
    for start in range(0, VOCABULARY, BLOCK):
        at_V = start + tl.arange(0, BLOCK)
        x_V = _load_logits(row_ptr, at_V, VOCABULARY, STRIDE)
        part_V = fast_exp(x_V - top)
        before_V += ((passed + tl.cumsum(part_V, 0) <= reached) & (at_V < VOCABULARY)).to(tl.int32)
        passed += tl.sum(part_V, 0)
    # Two sums in another order may differ a little; no draw exceeds the last token.
    tl.store(drawn_ptr + row, tl.minimum(tl.sum(before_V, 0), VOCABULARY - 1).to(tl.int64))


@triton.jit
def _empty_lanes(BLOCK: tl.constexpr):
    """The initial running softmax of each lane: below every logit, but finite, so that differences are 0."""
    return tl.full([BLOCK // LANE], -1e30, tl.float32), tl.zeros([BLOCK // LANE], tl.float32)


@triton.jit
def _lanes(start, BLOCK: tl.constexpr):
    """The indices of a block, those of a lane adjacent."""
    return start + tl.arange(0, BLOCK // LANE)[:, None] * LANE + tl.arange(0, LANE)[None, :]


@triton.jit
def _update_lanes(top_L, sum_L, x_LW):
    """The highest logit of each lane so far and the sum of its running softmax, with one more part of the row."""
    higher_L = tl.maximum(top_L, tl.max(x_LW, 1))
    return higher_L, sum_L * fast_exp(top_L - higher_L) + tl.sum(fast_exp(x_LW - higher_L[:, None]), 1)


@triton.jit
def _reduce_lanes(top_L, sum_L):
    """The highest logit of a row, and the sum of its softmax."""
    top = tl.max(top_L, 0)
    return top, tl.sum(sum_L * fast_exp(top_L - top), 0)


@triton.jit
def _load_logits(row_ptr, at, VOCABULARY: tl.constexpr, STRIDE: tl.constexpr):
    """A part of a row; minus infinity after the vocabulary."""
    x = tl.load(row_ptr + at, mask=at < STRIDE, other=0.0).to(tl.float32)
    return tl.where(at < VOCABULARY, x, -float("inf"))
