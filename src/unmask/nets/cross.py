"""Cross-attention: the tokens of one flat batch look at those of another, sequence by sequence.

What arrives: states of a decoder, and a `Source`: states of an encoder, with borders on both sides. What leaves: what
each token of the decoder takes from its source. What never happens here: a look at the source of another sequence.

Shapes: T tokens that look, U tokens that are looked at, S sequences of both, L and M the longest of them, D width,
H heads, K width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.attention import Lowering, chosen
from unmask.nets.dropout import drop
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Source:
    """What is looked at. Sequence i of those that look sees all of sequence i of the source, and nothing else."""

    states_UD: Tensor
    borders: Borders
    lookers: Borders
    """Borders of the tokens that look."""


class Cross(nn.Module):
    """Multi-head attention from one batch to another, with merged key and value projections."""

    def __init__(self, trunk: Trunk, source: int) -> None:
        super().__init__()
        self.heads = trunk.heads
        self.dropout = trunk.attention_dropout
        self.lowering = Lowering.AUTO
        self.query = nn.Linear(trunk.width, trunk.width)
        self.kv = nn.Linear(source, 2 * trunk.width)
        self.out = nn.Linear(trunk.width, trunk.width)

    def forward(self, x_TD: Tensor, source: Source | Kept) -> Tensor:
        """Look at the source, or at what was kept of it."""
        q_THK = self.query(x_TD).view(len(x_TD), self.heads, -1)
        y_THK = source.look(q_THK) if isinstance(source, Kept) else self._attend(q_THK, source)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def keys_values(self, states_UD: Tensor) -> Tensor:
        """What is seen of a source (U x 2 x H x K)."""
        kv_U2HK: Tensor = self.kv(states_UD).view(len(states_UD), 2, self.heads, -1)
        return kv_U2HK

    def _attend(self, q_THK: Tensor, source: Source) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        kv_U2HK = self.keys_values(source.states_UD)
        return _KERNELS[chosen(self.lowering, q_THK, dropout)](q_THK, kv_U2HK, source, dropout)


def _grids(q_THK: Tensor, kv_U2HK: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as grids with the heads in front."""
    q_SHLK = to_grid(q_THK, source.lookers).transpose(1, 2)
    k_SHMK, v_SHMK = to_grid(kv_U2HK, source.borders).permute(2, 0, 3, 1, 4).unbind(0)
    return q_SHLK, k_SHMK, v_SHMK


def _dense(q_THK: Tensor, kv_U2HK: Tensor, source: Source, dropout: float) -> Tensor:
    q_SHLK, k_SHMK, v_SHMK = _grids(q_THK, kv_U2HK, source)
    scores_SHLM = q_SHLK @ k_SHMK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLM = scores_SHLM.masked_fill(~source.borders.real_SL()[:, None, None, :], -torch.inf)
    weights_SHLM = F.dropout(scores_SHLM.softmax(-1), dropout)
    return from_grid((weights_SHLM @ v_SHMK).transpose(1, 2), source.lookers)


def _each(q_THK: Tensor, kv_U2HK: Tensor, source: Source, dropout: float) -> Tensor:
    looking, seen = (borders.offsets_S1.diff().tolist() for borders in (source.lookers, source.borders))
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(looking, 1)
    k_HKU = kv_U2HK[:, 0].permute(1, 2, 0).split_with_sizes(seen, 2)
    v_HUK = kv_U2HK[:, 1].transpose(0, 1).split_with_sizes(seen, 1)
    each = zip(q_HTK, k_HKU, v_HUK, strict=True)
    return torch.cat([drop((q @ k).softmax(-1), dropout) @ v for q, k, v in each], dim=1).transpose(0, 1)


def _sdpa(q_THK: Tensor, kv_U2HK: Tensor, source: Source, dropout: float) -> Tensor:
    mask = None if source.borders.equal else source.borders.real_SL()[:, None, None, :]
    y_SHLK = F.scaled_dot_product_attention(*_grids(q_THK, kv_U2HK, source), mask, dropout)
    return from_grid(y_SHLK.transpose(1, 2), source.lookers)


def _varlen(q_THK: Tensor, kv_U2HK: Tensor, source: Source, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    k_UHK, v_UHK = kv_U2HK.unbind(1)
    ends = source.lookers.offsets_S1, source.borders.offsets_S1
    y_THK = varlen_attn(q_THK, k_UHK, v_UHK, *ends, source.lookers.longest, source.borders.longest)
    assert isinstance(y_THK, Tensor)
    return y_THK


_KERNELS = {
    Lowering.DENSE: _dense,
    Lowering.EACH: _each,
    Lowering.SDPA: _sdpa,
    Lowering.FLEX: _sdpa,  # nothing is hidden inside a source, so that a mask of blocks has nothing to leave out
    Lowering.VARLEN: _varlen,
}
