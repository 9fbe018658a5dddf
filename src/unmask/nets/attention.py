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

from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.nets.trunk import Trunk


class Lowering(StrEnum):
    """The ways in which attention can be computed; all give the same result."""

    AUTO = "auto"
    """Variable-length flash attention on a GPU in half precision without attention dropout, else SDPA."""
    DENSE = "dense"
    """Scores, softmax and sum written out: the reference."""
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
        q_THK, k_THK, v_THK = self.qkv(x_TD).view(len(x_TD), 3, self.heads, -1).unbind(1)
        dropout = self.dropout if self.training else 0.0
        y_THK = _KERNELS[_chosen(self.lowering, q_THK, dropout)](q_THK, k_THK, v_THK, borders, dropout)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD


def _chosen(wish: Lowering, q_THK: Tensor, dropout: float) -> Lowering:
    if wish is not Lowering.AUTO:
        return wish
    half = q_THK.dtype in (torch.bfloat16, torch.float16)
    return Lowering.VARLEN if q_THK.is_cuda and half and not dropout else Lowering.SDPA


def _dense(q_THK: Tensor, k_THK: Tensor, v_THK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q, k, v = (to_grid(x, borders).transpose(1, 2) for x in (q_THK, k_THK, v_THK))
    scores_SHLL = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    scores_SHLL = scores_SHLL.masked_fill(~borders.real_SL()[:, None, None, :], float("-inf"))
    weights_SHLL = F.dropout(scores_SHLL.softmax(-1), dropout)
    return from_grid((weights_SHLL @ v).transpose(1, 2), borders)


def _sdpa(q_THK: Tensor, k_THK: Tensor, v_THK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q, k, v = (to_grid(x, borders).transpose(1, 2) for x in (q_THK, k_THK, v_THK))
    mask = None if borders.equal else borders.real_SL()[:, None, None, :]
    y_SHLK = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    return from_grid(y_SHLK.transpose(1, 2), borders)


def _flex(q_THK: Tensor, k_THK: Tensor, v_THK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    total = len(q_THK)
    home_T = torch.bucketize(torch.arange(total, device=q_THK.device), borders.offsets_S1[1:], right=True)

    def same(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return home_T[query] == home_T[key]

    mask = create_block_mask(same, None, None, total, total, device=str(q_THK.device))
    q, k, v = (x.transpose(0, 1)[None] for x in (q_THK, k_THK, v_THK))
    y_1HTK = flex_attention(q, k, v, block_mask=mask)
    assert isinstance(y_1HTK, Tensor)
    return y_1HTK[0].transpose(0, 1)


def _varlen(q_THK: Tensor, k_THK: Tensor, v_THK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    offsets, longest = borders.offsets_S1, borders.longest
    y_THK = varlen_attn(q_THK, k_THK, v_THK, offsets, offsets, longest, longest)
    assert isinstance(y_THK, Tensor)
    return y_THK


_KERNELS = {Lowering.DENSE: _dense, Lowering.SDPA: _sdpa, Lowering.FLEX: _flex, Lowering.VARLEN: _varlen}
