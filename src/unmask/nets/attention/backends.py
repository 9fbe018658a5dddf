"""Attention over a flat batch in each of its backends; `select_backend` chooses by mask, device and precision.

`attention` is self-attention over merged queries, keys and values, in the fastest kernels. `attention_over_keys` is the
general form on a padded grid: keys and values of other states or of a memory in front of each sequence, a bias added to
the scores, any rule as mask. `cross_attention` is attention to the sequences of another batch, visible as a whole.

Shapes: T query tokens, U source tokens, S sequences, L queries of the longest, M keys of the longest, H heads, K width
of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.config.attention_pattern import MaskKind, RowCoordinates
from unmask.nets.attention.sliding_window import sliding_window_attention
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.kernels.dispatch import apply_dropout, kernel_supports
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds


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


class ScoreBias(Protocol):
    """A module whose result is added to the scores q @ k / sqrt(K) before the softmax.

    T5's relative buckets read the coordinates alone; Transformer-XL's position terms read queries and keys as well.
    """

    def __call__(self, q_SHLK: Tensor, k_SHMK: Tensor, query: RowCoordinates, key: RowCoordinates) -> Tensor:
        """Scores that broadcast to S x H x L x M.

        `query.index` is S x L x 1 and `key.index` S x 1 x M (or 1 in place of S, where all sequences are alike), so
        that `key.index - query.index` is the distance of every pair; a memory has negative indices.
        """


@dataclass(frozen=True, slots=True)
class MemoryKeys:
    """Keys and values of earlier states in front of each sequence."""

    kv_SM2HK: Tensor
    valid_SM: Tensor
    """Which of them exist; a memory that is still short fills the end."""


def attention(
    backend: AttentionBackend,
    qkv_T3HK: Tensor,
    sequences: PackedSequences,
    dropout: float = 0.0,
    deferred_bias_3D: Tensor | None = None,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """Self-attention of every token in one backend, which is not AUTO.

    `deferred_bias_3D`: a bias that is in the states already, and whose gradient is computed here.
    """
    if backend is AttentionBackend.TRITON:
        from unmask.nets.kernels.attention import triton_attention

        return triton_attention(qkv_T3HK, sequences, dropout, deferred_bias_3D, seeds=seeds)
    if deferred_bias_3D is not None:
        qkv_T3HK = add_bias_grad(qkv_T3HK, deferred_bias_3D)
    if sequences.mask_kind is MaskKind.DENSE and backend is not AttentionBackend.FLEX:
        return attention_over_keys(backend, qkv_T3HK[:, 0], qkv_T3HK[:, 1:], sequences, dropout)
    return _BACKENDS[backend](qkv_T3HK, sequences, dropout)


def attention_over_keys(
    backend: AttentionBackend,
    q_THK: Tensor,
    kv_T2HK: Tensor,
    sequences: PackedSequences,
    dropout: float = 0.0,
    memory: MemoryKeys | None = None,
    bias: ScoreBias | None = None,
) -> Tensor:
    """Attention on the padded grid under any rule, with keys of any states, a memory in front of them, and a bias.

    REFERENCE writes everything out; every other backend is SDPA. A query that may read nothing gets zeros.
    """
    q_SHLK = pad(q_THK, sequences).transpose(1, 2)
    k_SHMK, v_SHMK = pad(kv_T2HK, sequences).permute(2, 0, 3, 1, 4).unbind(0)
    query, valid_SM = sequences.coordinates_SL(), sequences.valid_SL()
    key = query
    if memory is not None:
        earlier_k, earlier_v = memory.kv_SM2HK.permute(2, 0, 3, 1, 4).unbind(0)
        k_SHMK, v_SHMK = torch.cat([earlier_k, k_SHMK], 2), torch.cat([earlier_v, v_SHMK], 2)
        valid_SM = torch.cat([memory.valid_SM, valid_SM], 1)
        key = _with_memory(query, len(valid_SM), memory.valid_SM.shape[1])
    query, key = query.map(lambda one: one[:, :, None]), key.map(lambda one: one[:, None, :])
    allowed_SLM = sequences.rule.allows(query, key) & valid_SM[:, None, :]
    blind_SL1 = ~allowed_SLM.any(-1, keepdim=True)
    mask_SHLM = (allowed_SLM | blind_SL1)[:, None]
    if bias is not None:
        mask_SHLM = bias(q_SHLK, k_SHMK, query, key).to(q_SHLK.dtype).masked_fill(~mask_SHLM, -torch.inf)
    y_SHLK = _masked_attention(backend, q_SHLK, k_SHMK, v_SHMK, mask_SHLM, dropout)
    return unpad(y_SHLK.masked_fill(blind_SL1[:, None], 0.0).transpose(1, 2), sequences)


def _masked_attention(
    backend: AttentionBackend, q_SHLK: Tensor, k_SHMK: Tensor, v_SHMK: Tensor, mask_SHLM: Tensor, dropout: float
) -> Tensor:
    """Attention under a mask of bools or of numbers to add; written out with dropout on a CPU, as SDPA would do."""
    if backend is not AttentionBackend.REFERENCE and not (dropout and q_SHLK.is_cpu):
        return F.scaled_dot_product_attention(q_SHLK, k_SHMK, v_SHMK, mask_SHLM, dropout)
    scores_SHLM = q_SHLK @ k_SHMK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    if mask_SHLM.dtype is torch.bool:
        scores_SHLM = scores_SHLM.masked_fill(~mask_SHLM, -torch.inf)
    else:
        scores_SHLM = scores_SHLM + mask_SHLM
    return apply_dropout(scores_SHLM.softmax(-1), dropout) @ v_SHMK


def _with_memory(row: RowCoordinates, sequences: int, size: int) -> RowCoordinates:
    """The coordinates of keys with a memory in front: indices below 0, in the document of the first token, in order."""
    index, document, prefix, rank = (
        one.expand(sequences, -1) for one in (row.index, row.document, row.prefix, row.rank)
    )
    earlier_SM = torch.arange(-size, 0, device=index.device).expand(sequences, -1)
    return RowCoordinates(
        index=torch.cat([earlier_SM, index], 1),
        document=torch.cat([document[:, :1].expand(-1, size), document], 1),
        prefix=torch.cat([torch.zeros_like(earlier_SM, dtype=torch.bool), prefix], 1),
        rank=torch.cat([torch.full_like(earlier_SM, -1).to(rank.dtype), rank], 1),
    )


def add_bias_grad(states: Tensor, bias: Tensor) -> Tensor:
    """States as they are; a bias that is in them already gets its gradient, the sum of theirs over all tokens."""
    same: Tensor = _AddBiasGrad.apply(states, bias)  # type: ignore[no-untyped-call]
    return same


class _AddBiasGrad(torch.autograd.Function):
    """States as they are, and the gradient of a bias that is in them."""

    @staticmethod
    def forward(ctx: Any, qkv_T3HK: Tensor, bias_3D: Tensor) -> Tensor:  # noqa: ANN401
        ctx.dtype = bias_3D.dtype
        return qkv_T3HK.view_as(qkv_T3HK)

    @staticmethod
    def backward(ctx: Any, dqkv_T3HK: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        return dqkv_T3HK, dqkv_T3HK.sum(0).flatten().to(ctx.dtype)


def _padded_qkv(qkv_T3HK: Tensor, sequences: PackedSequences) -> tuple[Tensor, ...]:
    """Queries, keys and values as grids with the heads in front, laid out in one go."""
    return pad(qkv_T3HK, sequences).permute(2, 0, 3, 1, 4).unbind(0)


def _reference(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _padded_qkv(qkv_T3HK, sequences)
    scores_SHLL = q_SHLK @ k_SHLK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLL = scores_SHLL.masked_fill(~sequences.attention_mask_SLL()[:, None], -torch.inf)
    weights_SHLL = F.dropout(scores_SHLL.softmax(-1), dropout)
    return unpad((weights_SHLL @ v_SHLK).transpose(1, 2), sequences)


def _loop(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    if sequences.mask_kind in WINDOWS:
        return sliding_window_attention(qkv_T3HK, sequences, dropout)
    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    lengths = sequences.cu_seqlens_S1.diff().tolist()
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(lengths, 1)
    k_HKT = k_THK.permute(1, 2, 0).split_with_sizes(lengths, 2)
    v_HTK = v_THK.transpose(0, 1).split_with_sizes(lengths, 1)
    scores = _loop_scores(q_HTK, k_HKT, sequences)
    y_HTK = [apply_dropout(scores_HLL.softmax(-1), dropout) @ v for scores_HLL, v in zip(scores, v_HTK, strict=True)]
    return torch.cat(y_HTK, dim=1).transpose(0, 1)


def _loop_scores(q_HTK: Sequence[Tensor], k_HKT: Sequence[Tensor], sequences: PackedSequences) -> Iterator[Tensor]:
    """The scores of one sequence after another, each computed on demand."""
    scores = (q @ k for q, k in zip(q_HTK, k_HKT, strict=True))
    if sequences.mask_kind is MaskKind.FULL:
        yield from scores
        return
    hidden_SLL = (~sequences.attention_mask_SLL()).expand(sequences.num_sequences, -1, -1)
    for scores_HLL, hidden_LL in zip(scores, hidden_SLL, strict=True):
        length = scores_HLL.shape[-1]
        yield scores_HLL.masked_fill_(hidden_LL[:length, :length], -torch.inf)


def _sdpa(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _padded_qkv(qkv_T3HK, sequences)
    # Padding stands at the end of a sequence, so that a causal mask needs no other.
    past = sequences.mask_kind is MaskKind.CAUSAL
    plain = past or (sequences.is_uniform and sequences.mask_kind is MaskKind.FULL)
    mask = None if plain else sequences.attention_mask_SLL()[:, None]
    y_SHLK = F.scaled_dot_product_attention(q_SHLK, k_SHLK, v_SHLK, mask, dropout, is_causal=past)
    return unpad(y_SHLK.transpose(1, 2), sequences)


def _flex(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    total, rule = len(qkv_T3HK), sequences.rule
    sequence_T, row = sequences.sequence_id_T(total), sequences.coordinates_T()

    def mask_mod(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        allowed: Tensor = rule.allows(row.map(lambda one: one[query]), row.map(lambda one: one[key]))
        return (sequence_T[query] == sequence_T[key]) & allowed

    mask = create_block_mask(mask_mod, None, None, total, total, device=str(qkv_T3HK.device))
    q, k, v = (x_THK.transpose(0, 1)[None] for x_THK in qkv_T3HK.unbind(1))
    y_1HTK = flex_attention(q, k, v, block_mask=mask)
    assert isinstance(y_1HTK, Tensor)
    return y_1HTK[0].transpose(0, 1)


def _varlen(qkv_T3HK: Tensor, sequences: PackedSequences, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    ends = sequences.cu_seqlens_S1, sequences.cu_seqlens_S1, sequences.max_seqlen, sequences.max_seqlen
    y_THK = varlen_attn(q_THK, k_THK, v_THK, *ends, window_size=_window(sequences))
    assert isinstance(y_THK, Tensor)
    return y_THK


def _window(sequences: PackedSequences) -> tuple[int, int]:
    """How many tokens to the left and to the right a token reads; -1 is all of them."""
    match sequences.mask_kind:
        case MaskKind.SLIDING_WINDOW:
            return sequences.window, sequences.window
        case MaskKind.CAUSAL_WINDOW:
            return sequences.window, 0
        case MaskKind.CAUSAL:
            return -1, 0
    return -1, -1


_BACKENDS = {
    AttentionBackend.REFERENCE: _reference,
    AttentionBackend.LOOP: _loop,
    AttentionBackend.SDPA: _sdpa,
    AttentionBackend.FLEX: _flex,
    AttentionBackend.VARLEN: _varlen,
}


def cross_attention(
    backend: AttentionBackend,
    q_THK: Tensor,
    kv_U2HK: Tensor,
    query_sequences: PackedSequences,
    sequences: PackedSequences,
    dropout: float = 0.0,
) -> Tensor:
    """Attention of each query sequence to the whole of the sequence with the same number, in one backend."""
    return _CROSS_BACKENDS[backend](q_THK, kv_U2HK, query_sequences, sequences, dropout)


def _padded_cross(
    q_THK: Tensor, kv_U2HK: Tensor, queries: PackedSequences, sequences: PackedSequences
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as grids with the heads in front."""
    q_SHLK = pad(q_THK, queries).transpose(1, 2)
    k_SHMK, v_SHMK = pad(kv_U2HK, sequences).permute(2, 0, 3, 1, 4).unbind(0)
    return q_SHLK, k_SHMK, v_SHMK


def _cross_reference(
    q_THK: Tensor, kv_U2HK: Tensor, queries: PackedSequences, sequences: PackedSequences, dropout: float
) -> Tensor:
    q_SHLK, k_SHMK, v_SHMK = _padded_cross(q_THK, kv_U2HK, queries, sequences)
    scores_SHLM = q_SHLK @ k_SHMK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLM = scores_SHLM.masked_fill(~sequences.valid_SL()[:, None, None, :], -torch.inf)
    weights_SHLM = F.dropout(scores_SHLM.softmax(-1), dropout)
    return unpad((weights_SHLM @ v_SHMK).transpose(1, 2), queries)


def _cross_loop(
    q_THK: Tensor, kv_U2HK: Tensor, queries: PackedSequences, sequences: PackedSequences, dropout: float
) -> Tensor:
    query_lengths, lengths = (one.cu_seqlens_S1.diff().tolist() for one in (queries, sequences))
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(query_lengths, 1)
    k_HKU = kv_U2HK[:, 0].permute(1, 2, 0).split_with_sizes(lengths, 2)
    v_HUK = kv_U2HK[:, 1].transpose(0, 1).split_with_sizes(lengths, 1)
    each = zip(q_HTK, k_HKU, v_HUK, strict=True)
    return torch.cat([apply_dropout((q @ k).softmax(-1), dropout) @ v for q, k, v in each], dim=1).transpose(0, 1)


def _cross_sdpa(
    q_THK: Tensor, kv_U2HK: Tensor, queries: PackedSequences, sequences: PackedSequences, dropout: float
) -> Tensor:
    mask = None if sequences.is_uniform else sequences.valid_SL()[:, None, None, :]
    y_SHLK = F.scaled_dot_product_attention(*_padded_cross(q_THK, kv_U2HK, queries, sequences), mask, dropout)
    return unpad(y_SHLK.transpose(1, 2), queries)


def _cross_varlen(
    q_THK: Tensor, kv_U2HK: Tensor, queries: PackedSequences, sequences: PackedSequences, dropout: float
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    k_UHK, v_UHK = kv_U2HK.unbind(1)
    y_THK = varlen_attn(
        q_THK, k_UHK, v_UHK, queries.cu_seqlens_S1, sequences.cu_seqlens_S1, queries.max_seqlen, sequences.max_seqlen
    )
    assert isinstance(y_THK, Tensor)
    return y_THK


_CROSS_BACKENDS = {
    AttentionBackend.REFERENCE: _cross_reference,
    AttentionBackend.LOOP: _cross_loop,
    AttentionBackend.SDPA: _cross_sdpa,
    AttentionBackend.FLEX: _cross_sdpa,  # a source is visible as a whole, so that there is no block mask
    AttentionBackend.VARLEN: _cross_varlen,
}
