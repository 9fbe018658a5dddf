"""The attention backends, and which of them is taken for a mask, a device and a precision."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from unmask.config.attention_pattern import MaskKind
from unmask.nets.kernels.dispatch import kernel_supports


class AttentionBackend(StrEnum):
    """The ways in which attention can be computed; all give the same result."""

    AUTO = "auto"
    """The one that `select_backend` expects to be the fastest."""
    REFERENCE = "dense"
    """Scores, softmax and sum written out: the reference."""
    LOOP = "each"
    """The same written out for one sequence after another: no padding, no mask, and the scores stay in the cache. In a
    sliding window in blocks of queries, each against the keys within its radius alone (`sliding_window.py`)."""
    SDPA = "sdpa"
    """torch's fused attention on a padded grid."""
    FLEX = "flex"
    """FlexAttention over the flat batch, with the rule itself as mask_mod."""
    VARLEN = "varlen"
    """Variable-length flash attention over the flat batch, CUDA only; it has no dropout."""
    TRITON = "kernel"
    """The same in Triton kernels, with dropout (`kernels/attention.py`)."""


KERNEL_HEAD_DIMS = frozenset({16, 32, 64, 128})
"""Head widths that the Triton kernels can read."""
HALF_DTYPES = (torch.bfloat16, torch.float16)
"""Precisions in which attention is fast on a GPU."""
_VARLEN_MASKS = frozenset({MaskKind.FULL, MaskKind.CAUSAL, MaskKind.SLIDING_WINDOW, MaskKind.CAUSAL_WINDOW})
"""Masks that variable-length flash attention knows."""
_TRITON_MASKS = frozenset({MaskKind.FULL, MaskKind.CAUSAL, MaskKind.SLIDING_WINDOW})
"""Masks that the Triton kernels know."""
WINDOWS = (MaskKind.SLIDING_WINDOW, MaskKind.CAUSAL_WINDOW)


def select_backend(
    requested: AttentionBackend,
    states: Tensor,
    dropout: float,
    mask_kind: MaskKind = MaskKind.FULL,
    fused: bool = False,
) -> AttentionBackend:
    """The backend for these states: the requested one where it knows the mask, else SDPA.

    `fused`: whether AUTO may stand for the Triton kernels.
    """
    match requested:
        case AttentionBackend.AUTO:
            return _fastest(states, dropout, mask_kind, fused and not torch.compiler.is_compiling())
        case AttentionBackend.VARLEN:
            return requested if mask_kind in _VARLEN_MASKS else AttentionBackend.SDPA
        case AttentionBackend.TRITON:
            return requested if _kernel_supports(states, mask_kind) else AttentionBackend.SDPA
    return requested


def _fastest(states: Tensor, dropout: float, mask_kind: MaskKind, fused: bool) -> AttentionBackend:
    """What AUTO stands for. On a GPU in half precision TRITON, else VARLEN without dropout, where they know the mask.

    With dropout LOOP on a CPU, where SDPA has no kernel for it and would write everything out as well, with padding.
    In a window LOOP wherever those cannot be taken: a grid would cost the square of the length.
    """
    if states.is_cuda and states.dtype in HALF_DTYPES:
        if fused and _kernel_supports(states, mask_kind):
            return AttentionBackend.TRITON
        if not dropout and states.shape[-1] % 8 == 0 and mask_kind in _VARLEN_MASKS:  # what flash can read
            return AttentionBackend.VARLEN
    if mask_kind in WINDOWS:
        return AttentionBackend.LOOP
    # Compiled code would be made anew for every list of lengths.
    alone = states.is_cpu and dropout and not torch.compiler.is_compiling()
    return AttentionBackend.LOOP if alone else AttentionBackend.SDPA


def _kernel_supports(states: Tensor, mask_kind: MaskKind) -> bool:
    """Whether the Triton kernels can be taken: for merged keys and values, with queries or not (T x 3 or 2 x H x K)."""
    merged = states.dim() == 4 and states.shape[-1] in KERNEL_HEAD_DIMS
    return merged and mask_kind in _TRITON_MASKS and kernel_supports(states)
