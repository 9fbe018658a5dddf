"""Attention from one flat batch to another: each token of one sequence looks at all tokens of another.

What arrives: queries with their borders, keys and values with theirs; as many sequences on both sides.
What leaves: what each query hears. What never happens here: a look at another sequence than the one in the same place.

Shapes: T tokens that look, U tokens that are looked at, S sequences of both, L and M the longest of them, H heads,
K width of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.nets.attention.select_backend import AttentionBackend
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.layers.dropout import apply_dropout


def cross_attention(
    backend: AttentionBackend,
    q_THK: Tensor,
    kv_U2HK: Tensor,
    query_sequences: PackedSequences,
    sequences: PackedSequences,
    dropout: float = 0.0,
) -> Tensor:
    """What every looker hears, computed in one way."""
    return _BACKENDS[backend](q_THK, kv_U2HK, query_sequences, sequences, dropout)


def _padded_qkv(
    q_THK: Tensor, kv_U2HK: Tensor, lookers: PackedSequences, borders: PackedSequences
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as grids with the heads in front."""
    q_SHLK = pad(q_THK, lookers).transpose(1, 2)
    k_SHMK, v_SHMK = pad(kv_U2HK, borders).permute(2, 0, 3, 1, 4).unbind(0)
    return q_SHLK, k_SHMK, v_SHMK


def _reference(
    q_THK: Tensor, kv_U2HK: Tensor, lookers: PackedSequences, borders: PackedSequences, dropout: float
) -> Tensor:
    q_SHLK, k_SHMK, v_SHMK = _padded_qkv(q_THK, kv_U2HK, lookers, borders)
    scores_SHLM = q_SHLK @ k_SHMK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLM = scores_SHLM.masked_fill(~borders.valid_SL()[:, None, None, :], -torch.inf)
    weights_SHLM = F.dropout(scores_SHLM.softmax(-1), dropout)
    return unpad((weights_SHLM @ v_SHMK).transpose(1, 2), lookers)


def _loop(q_THK: Tensor, kv_U2HK: Tensor, lookers: PackedSequences, borders: PackedSequences, dropout: float) -> Tensor:
    looking, seen = (one.cu_seqlens_S1.diff().tolist() for one in (lookers, borders))
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(looking, 1)
    k_HKU = kv_U2HK[:, 0].permute(1, 2, 0).split_with_sizes(seen, 2)
    v_HUK = kv_U2HK[:, 1].transpose(0, 1).split_with_sizes(seen, 1)
    each = zip(q_HTK, k_HKU, v_HUK, strict=True)
    return torch.cat([apply_dropout((q @ k).softmax(-1), dropout) @ v for q, k, v in each], dim=1).transpose(0, 1)


def _sdpa(q_THK: Tensor, kv_U2HK: Tensor, lookers: PackedSequences, borders: PackedSequences, dropout: float) -> Tensor:
    mask = None if borders.is_uniform else borders.valid_SL()[:, None, None, :]
    y_SHLK = F.scaled_dot_product_attention(*_padded_qkv(q_THK, kv_U2HK, lookers, borders), mask, dropout)
    return unpad(y_SHLK.transpose(1, 2), lookers)


def _varlen(
    q_THK: Tensor, kv_U2HK: Tensor, lookers: PackedSequences, borders: PackedSequences, dropout: float
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    k_UHK, v_UHK = kv_U2HK.unbind(1)
    y_THK = varlen_attn(
        q_THK, k_UHK, v_UHK, lookers.cu_seqlens_S1, borders.cu_seqlens_S1, lookers.max_seqlen, borders.max_seqlen
    )
    assert isinstance(y_THK, Tensor)
    return y_THK


_BACKENDS = {
    AttentionBackend.REFERENCE: _reference,
    AttentionBackend.LOOP: _loop,
    AttentionBackend.SDPA: _sdpa,
    AttentionBackend.FLEX: _sdpa,  # a source is visible as a whole, so that there is no block mask
    AttentionBackend.VARLEN: _varlen,
}
