"""Arithmetic shared by kernels: powers of e and reciprocals in the fewest instructions, and dropout's keep mask.

Results are right to six digits at least; powers far from 0 have fewer, as their exponents have. Numbers too small to be
normal become 0: to keep them, which no sum notices, the compiler scales the operands and the result of an instruction,
a quarter of GELU's instructions.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def fast_exp(x):
    """The power of e."""
    return tl.exp2(x * LOG2E)


@triton.jit
def fast_reciprocal(x):
    """1 over a positive number, by its root."""
    root = tl.rsqrt(x)
    return root * root


@triton.jit
def keep_mask(seed, place, rate):  # type: ignore[no-untyped-def]
    """Whether a place keeps its value: a function of a seed and a place, so that both passes agree.

    `place` is a block of int32 numbers, `rate` the share that is dropped.

    Two rounds of multiply and shift (the finaliser of MurmurHash3) are enough for a coin and cost a third of Philox.
    """
    x = (place.to(tl.uint32) * 0x9E3779B1) ^ seed.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x >= tl.cast(rate * 4294967296.0, tl.uint32)
