"""What tokens of a flat batch hear from each other, in each of the ways in which that can be computed.

What arrives: merged queries, keys and values, and borders with a sight. What leaves: what every token hears.
What never happens here: a choice among the ways; `select_backend.py` has that.

Shapes: T tokens, S sequences, L the longest, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.nets.attention.select_backend import AttentionBackend
from unmask.nets.attention.sliding_window import sliding_window_attention
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences, pad, unpad
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.dropout import apply_dropout


def attention(
    backend: AttentionBackend,
    qkv_T3HK: Tensor,
    sequences: PackedSequences,
    dropout: float = 0.0,
    deferred_bias_3D: Tensor | None = None,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """What every token hears, computed in one way; `AUTO` is none, `chosen` says which it stands for.

    `owed_3D`: a bias that is in the states already, and has yet to get its gradient.
    """
    if backend is AttentionBackend.TRITON:
        from unmask.nets.kernels.attention import triton_attention

        return triton_attention(qkv_T3HK, sequences, dropout, deferred_bias_3D, seeds=seeds)
    if deferred_bias_3D is not None:
        qkv_T3HK = add_bias_grad(qkv_T3HK, deferred_bias_3D)
    return _BACKENDS[backend](qkv_T3HK, sequences, dropout)


def add_bias_grad(states: Tensor, bias: Tensor) -> Tensor:
    """States as they are; a bias that is in them already gets its gradient, the sum of theirs over all tokens."""
    same: Tensor = _AddBiasGrad.apply(states, bias)  # type: ignore[no-untyped-call]
    return same


class _AddBiasGrad(torch.autograd.Function):
    """States as they are, and the gradient that a bias in them is owed."""

    @staticmethod
    def forward(ctx: Any, qkv_T3HK: Tensor, owed_3D: Tensor) -> Tensor:  # noqa: ANN401
        ctx.dtype = owed_3D.dtype
        return qkv_T3HK.view_as(qkv_T3HK)

    @staticmethod
    def backward(ctx: Any, dqkv_T3HK: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        return dqkv_T3HK, dqkv_T3HK.sum(0).flatten().to(ctx.dtype)


def _padded_qkv(qkv_T3HK: Tensor, borders: PackedSequences) -> tuple[Tensor, ...]:
    """Queries, keys and values as grids with the heads in front, laid out in one go."""
    return pad(qkv_T3HK, borders).permute(2, 0, 3, 1, 4).unbind(0)


def _reference(qkv_T3HK: Tensor, borders: PackedSequences, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _padded_qkv(qkv_T3HK, borders)
    scores_SHLL = q_SHLK @ k_SHLK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLL = scores_SHLL.masked_fill(~borders.attention_mask_SLL()[:, None], -torch.inf)
    weights_SHLL = F.dropout(scores_SHLL.softmax(-1), dropout)
    return unpad((weights_SHLL @ v_SHLK).transpose(1, 2), borders)


def _loop(qkv_T3HK: Tensor, borders: PackedSequences, dropout: float) -> Tensor:
    if borders.mask_kind is MaskKind.SLIDING_WINDOW:
        return sliding_window_attention(qkv_T3HK, borders, dropout)
    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    lengths = borders.cu_seqlens_S1.diff().tolist()
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(lengths, 1)
    k_HKT = k_THK.permute(1, 2, 0).split_with_sizes(lengths, 2)
    v_HTK = v_THK.transpose(0, 1).split_with_sizes(lengths, 1)
    scores = _loop_scores(q_HTK, k_HKT, borders)
    y_HTK = [apply_dropout(scores_HLL.softmax(-1), dropout) @ v for scores_HLL, v in zip(scores, v_HTK, strict=True)]
    return torch.cat(y_HTK, dim=1).transpose(0, 1)


def _loop_scores(q_HTK: Sequence[Tensor], k_HKT: Sequence[Tensor], borders: PackedSequences) -> Iterator[Tensor]:
    """The scores of one sequence after another, each made when it is asked for."""
    scores = (q @ k for q, k in zip(q_HTK, k_HKT, strict=True))
    if borders.mask_kind is MaskKind.FULL:
        yield from scores
        return
    hidden_SLL = (~borders.attention_mask_SLL()).expand(borders.num_sequences, -1, -1)
    for scores_HLL, hidden_LL in zip(scores, hidden_SLL, strict=True):
        length = scores_HLL.shape[-1]
        yield scores_HLL.masked_fill_(hidden_LL[:length, :length], -torch.inf)


def _sdpa(qkv_T3HK: Tensor, borders: PackedSequences, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _padded_qkv(qkv_T3HK, borders)
    past = (
        borders.mask_kind is MaskKind.CAUSAL
    )  # padding stands behind every token that counts, so it needs no mask of its own
    plain = past or (borders.is_uniform and borders.mask_kind is MaskKind.FULL)
    mask = None if plain else borders.attention_mask_SLL()[:, None]
    y_SHLK = F.scaled_dot_product_attention(q_SHLK, k_SHLK, v_SHLK, mask, dropout, is_causal=past)
    return unpad(y_SHLK.transpose(1, 2), borders)


def _flex(qkv_T3HK: Tensor, borders: PackedSequences, dropout: float) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    total, device = len(qkv_T3HK), qkv_T3HK.device
    token_T, home_T = torch.arange(total, device=device), borders.sequence_id_T(total)
    shown_T = _visible_to_all(borders, token_T, home_T)
    reach = borders.window if borders.mask_kind is MaskKind.SLIDING_WINDOW else total

    def sees(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same_home = home_T[query] == home_T[key]
        return same_home & (shown_T[key] | (key <= query)) & ((query - key).abs() <= reach)

    mask = create_block_mask(sees, None, None, total, total, device=str(device))
    q, k, v = (x_THK.transpose(0, 1)[None] for x_THK in qkv_T3HK.unbind(1))
    y_1HTK = flex_attention(q, k, v, block_mask=mask)
    assert isinstance(y_1HTK, Tensor)
    return y_1HTK[0].transpose(0, 1)


def _visible_to_all(borders: PackedSequences, token_T: Tensor, home_T: Tensor) -> Tensor:
    """Which tokens the whole of their sequence sees (as far as it reaches), and not only what stands behind them."""
    match borders.mask_kind:
        case MaskKind.FULL | MaskKind.SLIDING_WINDOW:
            return torch.ones_like(token_T, dtype=torch.bool)
        case MaskKind.CAUSAL:
            return torch.zeros_like(token_T, dtype=torch.bool)
        case MaskKind.PREFIX_LM:
            return token_T < (borders.cu_seqlens_S1[:-1] + borders.prefix_lengths_S)[home_T]


def _varlen(qkv_T3HK: Tensor, borders: PackedSequences, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    ends = borders.cu_seqlens_S1, borders.cu_seqlens_S1, borders.max_seqlen, borders.max_seqlen
    y_THK = varlen_attn(q_THK, k_THK, v_THK, *ends, window_size=_window(borders))
    assert isinstance(y_THK, Tensor)
    return y_THK


def _window(borders: PackedSequences) -> tuple[int, int]:
    """How far a token sees to the left and to the right; -1 is all of it."""
    if borders.mask_kind is MaskKind.SLIDING_WINDOW:
        return borders.window, borders.window
    return -1, 0 if borders.mask_kind is MaskKind.CAUSAL else -1


_BACKENDS = {
    AttentionBackend.REFERENCE: _reference,
    AttentionBackend.LOOP: _loop,
    AttentionBackend.SDPA: _sdpa,
    AttentionBackend.FLEX: _flex,
    AttentionBackend.VARLEN: _varlen,
}
