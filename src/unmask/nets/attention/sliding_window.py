"""Attention in a sliding window, in blocks of queries: time and memory grow with the tokens, not with their square.

The flat batch is cut into blocks without regard to its sequences, each block meets the keys within the radius of its
queries, and keys of other sequences are masked. So the shapes follow from the number of tokens alone: nothing waits for
the device, and compiled code fits all lengths. There is no tensor of tokens x tokens.

Shapes: T tokens, N blocks, C queries of a block, W keys within their radius, H heads, K width of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.config.attention_pattern import MaskKind
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dispatch import apply_dropout

QUERY_BLOCK = 128
"""Queries of a block. More of them meet more keys in vain; fewer make products that are too small to be fast."""


def sliding_window_attention(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    """Attend within the radius, to both sides or to the past only."""
    total = len(qkv_T3HK)
    tail = -total % QUERY_BLOCK  # fills up the last block
    q_THK = F.pad(qkv_T3HK[:, 0], (0, 0, 0, 0, 0, tail))
    q_NHCK = q_THK.view(-1, QUERY_BLOCK, *q_THK.shape[1:]).transpose(1, 2)
    kv_T2HK = F.pad(qkv_T3HK[:, 1:], (0, 0, 0, 0, 0, 0, sequences.window, tail + sequences.window))
    k_NHWK, v_NHWK = _neighbors(kv_T2HK, sequences.window).movedim(-1, -2).unbind(1)  # overlapping views, not copies
    y_NHCK = _attend(q_NHCK, k_NHWK, v_NHWK, _visible_keys(sequences, total)[:, None], dropout)
    return y_NHCK.transpose(1, 2).flatten(0, 1)[:total]


def _visible_keys(sequences: PackedSequences, total: int) -> Tensor:
    """Which keys around a block each of its queries may read. What fills up a block reads itself and its like."""
    radius, own = sequences.window, slice(sequences.window, sequences.window + QUERY_BLOCK)
    sequence_T = F.pad(sequences.sequence_id_T(total), (radius, -total % QUERY_BLOCK + radius), value=-1)
    sequence_NW = _neighbors(sequence_T, radius)
    place_W = torch.arange(QUERY_BLOCK + 2 * radius, device=sequence_T.device)
    ahead_CW = place_W - place_W[own, None]
    near_CW = ahead_CW.abs() <= radius
    if sequences.mask_kind is MaskKind.CAUSAL_WINDOW:
        near_CW = near_CW & (ahead_CW <= 0)
    return (sequence_NW[:, own, None] == sequence_NW[:, None, :]) & near_CW


def _neighbors(x_T: Tensor, radius: int) -> Tensor:
    """What lies within the radius of each block, as the last axis; the batch comes with a margin on both sides."""
    return x_T.unfold(0, QUERY_BLOCK + 2 * radius, QUERY_BLOCK)


def _attend(q_NHCK: Tensor, k_NHWK: Tensor, v_NHWK: Tensor, seen_N1CW: Tensor, dropout: float) -> Tensor:
    """Fused, but written out with dropout on a CPU, where the fused kernel has none and draws would be slow."""
    if not (dropout and q_NHCK.is_cpu):
        return F.scaled_dot_product_attention(q_NHCK, k_NHWK, v_NHWK, seen_N1CW, dropout)
    scores_NHCW = (q_NHCK * q_NHCK.shape[-1] ** -0.5) @ k_NHWK.transpose(-1, -2)
    weights_NHCW = scores_NHCW.masked_fill_(~seen_N1CW, -torch.inf).softmax(-1)
    return apply_dropout(weights_NHCW, dropout) @ v_NHWK
