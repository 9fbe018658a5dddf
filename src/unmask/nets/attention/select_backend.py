"""The ways in which attention can be computed, and which of them is taken.

What arrives: a wish, states and what is to be said of them. What leaves: a name. What never happens here: attention.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from unmask.nets.batch.packed_sequences import MaskKind
from unmask.nets.kernels.dispatch import kernel_supports


class AttentionBackend(StrEnum):
    """The ways in which attention can be computed; all give the same result."""

    AUTO = "auto"
    """The one that `chosen` holds to be the fastest."""
    REFERENCE = "dense"
    """Scores, softmax and sum written out: the reference."""
    LOOP = "each"
    """The same written out for one sequence after another: no padding, no mask, and the scores stay in the cache. Under
    a NEAR sight in blocks of queries, each against the keys within its reach alone (`sliding_window.py`)."""
    SDPA = "sdpa"
    """torch's fused attention on a padded grid."""
    FLEX = "flex"
    """FlexAttention with a document mask over the flat batch."""
    VARLEN = "varlen"
    """Variable-length flash attention over the flat batch, CUDA only; it has no dropout."""
    TRITON = "kernel"
    """The same in kernels of our own, with dropout (`attention.py`)."""


KERNEL_HEAD_DIMS = frozenset({16, 32, 64, 128})
"""Heads that our own kernels can read."""
HALF_DTYPES = (torch.bfloat16, torch.float16)
"""Numbers in which attention is fast on a GPU."""


def select_backend(
    requested: AttentionBackend,
    states: Tensor,
    dropout: float,
    mask_kind: MaskKind = MaskKind.FULL,
    fused: bool = False,
) -> AttentionBackend:
    """The lowering that is taken for these states: the one that is wished for where it can be had, else SDPA.

    `fused`: whether AUTO may stand for kernels of our own.
    """
    match requested:
        case AttentionBackend.AUTO:
            return _fastest(states, dropout, mask_kind, fused and not torch.compiler.is_compiling())
        case AttentionBackend.VARLEN:
            return AttentionBackend.SDPA if mask_kind is MaskKind.PREFIX_LM else requested
        case AttentionBackend.TRITON:
            return requested if _kernel_supports(states, mask_kind) else AttentionBackend.SDPA
    return requested


def _fastest(states: Tensor, dropout: float, sight: MaskKind, fused: bool) -> AttentionBackend:
    """What AUTO stands for. On a GPU in half precision KERNEL, else VARLEN without dropout; neither can say PREFIX.

    With dropout EACH on a CPU, where SDPA has no kernel for it and would write everything out as well, with padding.
    Under a NEAR sight EACH wherever those cannot be taken: a grid would cost the square of the length.
    """
    if states.is_cuda and states.dtype in HALF_DTYPES and sight is not MaskKind.PREFIX_LM:
        if fused and _kernel_supports(states, sight):
            return AttentionBackend.TRITON
        if not dropout and states.shape[-1] % 8 == 0:  # what flash can read
            return AttentionBackend.VARLEN
    if sight is MaskKind.SLIDING_WINDOW:
        return AttentionBackend.LOOP
    # Compiled code would be made anew for every list of lengths.
    alone = states.is_cpu and dropout and not torch.compiler.is_compiling()
    return AttentionBackend.LOOP if alone else AttentionBackend.SDPA


def _kernel_supports(states: Tensor, sight: MaskKind) -> bool:
    """Whether kernels of our own can be taken: for merged keys and values, with queries or not (T x 3 or 2 x H x K)."""
    merged = states.dim() == 4 and states.shape[-1] in KERNEL_HEAD_DIMS
    return merged and sight is not MaskKind.PREFIX_LM and kernel_supports(states)
