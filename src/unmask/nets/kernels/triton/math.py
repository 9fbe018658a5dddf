"""Powers of e and quotients in the fewest instructions that a GPU has for them.

What arrives: float32 numbers in registers. What leaves: the same, right to six digits at least; powers far from 0 have
fewer, as their exponents have.
What never happens here: a number that is too small to be a normal one; it is 0. To keep such numbers, which no sum
notices, the compiler scales what goes into an instruction and what comes out of it: a quarter of GELU's instructions.
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
    """The quotient of 1 and a positive number, by its root."""
    root = tl.rsqrt(x)
    return root * root
