"""The ways in which attention can be computed, and which of them is taken.

What arrives: a wish, states and what is to be said of them. What leaves: a name. What never happens here: attention.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from unmask.nets.fused import served
from unmask.nets.layout import Sight


class Lowering(StrEnum):
    """The ways in which attention can be computed; all give the same result."""

    AUTO = "auto"
    """The one that `chosen` holds to be the fastest."""
    DENSE = "dense"
    """Scores, softmax and sum written out: the reference."""
    EACH = "each"
    """The same written out for one sequence after another: no padding, no mask, and the scores stay in the cache. Under
    a NEAR sight in blocks of queries, each against the keys within its reach alone (`near.py`)."""
    SDPA = "sdpa"
    """torch's fused attention on a padded grid."""
    FLEX = "flex"
    """FlexAttention with a document mask over the flat batch."""
    VARLEN = "varlen"
    """Variable-length flash attention over the flat batch, CUDA only; it has no dropout."""
    KERNEL = "kernel"
    """The same in kernels of our own, with dropout (`kernels_attention.py`)."""


WIDTHS = frozenset({16, 32, 64, 128})
"""Heads that our own kernels can read."""
HALVES = (torch.bfloat16, torch.float16)
"""Numbers in which attention is fast on a GPU."""


def chosen(wish: Lowering, states: Tensor, dropout: float, sight: Sight = Sight.FULL, fused: bool = False) -> Lowering:
    """The lowering that is taken for these states: the one that is wished for where it can be had, else SDPA.

    `fused`: whether AUTO may stand for kernels of our own.
    """
    match wish:
        case Lowering.AUTO:
            return _fastest(states, dropout, sight, fused and not torch.compiler.is_compiling())
        case Lowering.VARLEN:
            return Lowering.SDPA if sight is Sight.PREFIX else wish
        case Lowering.KERNEL:
            return wish if _ours(states, sight) else Lowering.SDPA
    return wish


def _fastest(states: Tensor, dropout: float, sight: Sight, fused: bool) -> Lowering:
    """What AUTO stands for. On a GPU in half precision KERNEL, else VARLEN without dropout; neither can say PREFIX.

    With dropout EACH on a CPU, where SDPA has no kernel for it and would write everything out as well, with padding.
    Under a NEAR sight EACH wherever those cannot be taken: a grid would cost the square of the length.
    """
    if states.is_cuda and states.dtype in HALVES and sight is not Sight.PREFIX:
        if fused and _ours(states, sight):
            return Lowering.KERNEL
        if not dropout and states.shape[-1] % 8 == 0:  # what flash can read
            return Lowering.VARLEN
    if sight is Sight.NEAR:
        return Lowering.EACH
    # Compiled code would be made anew for every list of lengths.
    alone = states.is_cpu and dropout and not torch.compiler.is_compiling()
    return Lowering.EACH if alone else Lowering.SDPA


def _ours(states: Tensor, sight: Sight) -> bool:
    """Whether kernels of our own can be taken: for merged keys and values, with queries or not (T x 3 or 2 x H x K)."""
    merged = states.dim() == 4 and states.shape[-1] in WIDTHS
    return merged and sight is not Sight.PREFIX and served(states)
