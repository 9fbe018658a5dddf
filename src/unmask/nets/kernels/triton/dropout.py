"""Which places dropout leaves out, drawn inside a kernel: a function of a seed and a place, so both passes agree."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def keep_mask(seed, place, rate):  # type: ignore[no-untyped-def]
    """Whether a place keeps its value. `place` is a block of int32 numbers, `rate` the share that is left out.

    Two rounds of multiply and shift (the finaliser of MurmurHash3) are enough for a coin and cost a third of Philox.
    """
    x = (place.to(tl.uint32) * 0x9E3779B1) ^ seed.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x >= tl.cast(rate * 4294967296.0, tl.uint32)
