"""Self-attention over a flat batch of sequences, lowered to the fastest kernel that can express it.

What arrives: states of all tokens, and the borders inside which they see each other.
What leaves: the attended states. What never happens here: one sequence seeing another.

Shapes: T tokens, S sequences, L the longest, D width, H heads, K width of a head.
"""

from __future__ import annotations

from enum import StrEnum

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.dropout import drop
from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.nets.trunk import Trunk


class Lowering(StrEnum):
    """The ways in which attention can be computed; all give the same result."""

    AUTO = "auto"
    """Without attention dropout VARLEN on a GPU in half precision; with it EACH on a CPU, where SDPA has no kernel for
    it and would write everything out as well, with padding; else SDPA."""
    DENSE = "dense"
    """Scores, softmax and sum written out: the reference."""
    EACH = "each"
    """The same written out for one sequence after another: no padding, no mask, and the scores stay in the cache."""
    SDPA = "sdpa"
    """torch's fused attention on a padded grid."""
    FLEX = "flex"
    """FlexAttention with a document mask over the flat batch."""
    VARLEN = "varlen"
    """Variable-length flash attention over the flat batch, CUDA only."""


class Attention(nn.Module):
    """Multi-head self-attention with merged query, key and value projections."""

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.heads = trunk.heads
        self.dropout = trunk.attention_dropout
        self.lowering = Lowering.AUTO
        self.qkv = nn.Linear(trunk.width, 3 * trunk.width)
        self.out = nn.Linear(trunk.width, trunk.width)

    def forward(self, x_TD: Tensor, borders: Borders) -> Tensor:
        """Attend inside each sequence."""
        qkv_T3HK = self.qkv(x_TD).view(len(x_TD), 3, self.heads, -1)
        dropout = self.dropout if self.training else 0.0
        y_THK = _KERNELS[_chosen(self.lowering, qkv_T3HK, dropout)](qkv_T3HK, borders, dropout)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD


def _chosen(wish: Lowering, qkv_T3HK: Tensor, dropout: float) -> Lowering:
    if wish is not Lowering.AUTO:
        return wish
    if qkv_T3HK.is_cuda and qkv_T3HK.dtype in (torch.bfloat16, torch.float16) and not dropout:
        return Lowering.VARLEN
    # Compiled code would be made anew for every list of lengths.
    return Lowering.EACH if qkv_T3HK.is_cpu and dropout and not torch.compiler.is_compiling() else Lowering.SDPA


def _grids(qkv_T3HK: Tensor, borders: Borders) -> tuple[Tensor, ...]:
    """Queries, keys and values as grids with the heads in front, laid out in one go."""
    return to_grid(qkv_T3HK, borders).permute(2, 0, 3, 1, 4).unbind(0)


def _dense(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _grids(qkv_T3HK, borders)
    scores_SHLL = q_SHLK @ k_SHLK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLL = scores_SHLL.masked_fill(~borders.real_SL()[:, None, None, :], float("-inf"))
    weights_SHLL = F.dropout(scores_SHLL.softmax(-1), dropout)
    return from_grid((weights_SHLL @ v_SHLK).transpose(1, 2), borders)


def _each(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    lengths = borders.offsets_S1.diff().tolist()
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(lengths, 1)
    k_HKT = k_THK.permute(1, 2, 0).split_with_sizes(lengths, 2)
    v_HTK = v_THK.transpose(0, 1).split_with_sizes(lengths, 1)
    each = zip(q_HTK, k_HKT, v_HTK, strict=True)
    return torch.cat([drop((q @ k).softmax(-1), dropout) @ v for q, k, v in each], dim=1).transpose(0, 1)


def _sdpa(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _grids(qkv_T3HK, borders)
    mask = None if borders.equal else borders.real_SL()[:, None, None, :]
    y_SHLK = F.scaled_dot_product_attention(q_SHLK, k_SHLK, v_SHLK, attn_mask=mask, dropout_p=dropout)
    return from_grid(y_SHLK.transpose(1, 2), borders)


def _flex(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    total, device = len(qkv_T3HK), qkv_T3HK.device
    home_T = torch.bucketize(torch.arange(total, device=device), borders.offsets_S1[1:], right=True)

    def same(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return home_T[query] == home_T[key]

    mask = create_block_mask(same, None, None, total, total, device=str(device))
    q, k, v = (x_THK.transpose(0, 1)[None] for x_THK in qkv_T3HK.unbind(1))
    y_1HTK = flex_attention(q, k, v, block_mask=mask)
    assert isinstance(y_1HTK, Tensor)
    return y_1HTK[0].transpose(0, 1)


def _varlen(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    offsets, longest = borders.offsets_S1, borders.longest
    y_THK = varlen_attn(q_THK, k_THK, v_THK, offsets, offsets, longest, longest)
    assert isinstance(y_THK, Tensor)
    return y_THK


_KERNELS = {
    Lowering.DENSE: _dense,
    Lowering.EACH: _each,
    Lowering.SDPA: _sdpa,
    Lowering.FLEX: _flex,
    Lowering.VARLEN: _varlen,
}
