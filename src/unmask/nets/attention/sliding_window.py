"""Attention inside a window, in blocks of queries: time and memory grow with the number of tokens, not with its square.

What arrives: queries, keys and values of a flat batch whose borders say how far a token sees. What leaves: the attended
states. What never happens here: a loop over sequences, or a tensor of tokens x tokens.

The flat batch is cut into blocks without regard to its borders, each block meets the keys within reach of its queries,
and what belongs to another sequence is hidden. So the shapes follow from the number of tokens alone: nothing waits for
the device, and compiled code fits all lengths.

Shapes: T tokens, N blocks, C queries of a block, W keys that stand within their reach, H heads, K width of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.layers.dropout import apply_dropout

QUERY_BLOCK = 128
"""Queries of a block. More of them meet more keys in vain; fewer make products that are too small to be fast."""


def sliding_window_attention(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    """Attend within reach."""
    total = len(qkv_T3HK)
    tail = -total % QUERY_BLOCK  # fills up the last block
    q_THK = F.pad(qkv_T3HK[:, 0], (0, 0, 0, 0, 0, tail))
    q_NHCK = q_THK.view(-1, QUERY_BLOCK, *q_THK.shape[1:]).transpose(1, 2)
    kv_T2HK = F.pad(qkv_T3HK[:, 1:], (0, 0, 0, 0, 0, 0, sequences.window, tail + sequences.window))
    k_NHWK, v_NHWK = _neighbors(kv_T2HK, sequences.window).movedim(-1, -2).unbind(1)  # overlapping views, not copies
    y_NHCK = _attend(q_NHCK, k_NHWK, v_NHWK, _visible_keys(sequences, total)[:, None], dropout)
    return y_NHCK.transpose(1, 2).flatten(0, 1)[:total]


def _visible_keys(borders: PackedSequences, total: int) -> Tensor:
    """Which of the keys around a block each of its queries may read. What fills up a block sees itself and its like."""
    reach, own = borders.window, slice(borders.window, borders.window + QUERY_BLOCK)
    home_T = F.pad(borders.sequence_id_T(total), (reach, -total % QUERY_BLOCK + reach), value=-1)
    home_NW = _neighbors(home_T, reach)
    place_W = torch.arange(QUERY_BLOCK + 2 * reach, device=home_T.device)
    near_CW = (place_W - place_W[own, None]).abs() <= reach
    return (home_NW[:, own, None] == home_NW[:, None, :]) & near_CW


def _neighbors(x_T: Tensor, reach: int) -> Tensor:
    """What stands within reach of each block, as the last axis; the batch comes with a margin on both sides."""
    return x_T.unfold(0, QUERY_BLOCK + 2 * reach, QUERY_BLOCK)


def _attend(q_NHCK: Tensor, k_NHWK: Tensor, v_NHWK: Tensor, seen_N1CW: Tensor, dropout: float) -> Tensor:
    """Fused, but written out with dropout on a CPU, where the fused kernel has none and draws would be slow."""
    if not (dropout and q_NHCK.is_cpu):
        return F.scaled_dot_product_attention(q_NHCK, k_NHWK, v_NHWK, seen_N1CW, dropout)
    scores_NHCW = (q_NHCK * q_NHCK.shape[-1] ** -0.5) @ k_NHWK.transpose(-1, -2)
    weights_NHCW = scores_NHCW.masked_fill_(~seen_N1CW, -torch.inf).softmax(-1)
    return apply_dropout(weights_NHCW, dropout) @ v_NHWK
