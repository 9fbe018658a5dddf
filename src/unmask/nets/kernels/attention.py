"""Attention over a flat batch in Triton kernels: any lengths, dropout inside, one gradient written in one piece.

Full, causal and sliding-window masks; or the queries of some tokens alone with the keys and values of all, under a full
mask. Nothing is copied, padded or cut. Dropout is a function of one random number for each head and query token and one
for each head and key token, so that both passes drop the same, and the device is never waited for.

Shapes: T tokens, P query tokens (all, or some), S sequences, H heads, K width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, attention_seed_count
from unmask.nets.kernels.launch import device_of
from unmask.nets.kernels.triton import attention_backward as long_back
from unmask.nets.kernels.triton import attention_long as long
from unmask.nets.kernels.triton import attention_short as short
from unmask.nets.kernels.triton.attention_tiles import (
    AttentionTiles,
    Tile,
    shared_memory,
    tiles_for,
    tiles_for_query_subset,
)
from unmask.nets.kernels.triton.reduce import reduce_all

# mypy: disable-error-code="no-untyped-call, import-untyped, import-not-found"


def triton_attention(
    qkv_T3HK: Tensor,
    sequences: PackedSequences,
    dropout: float = 0.0,
    deferred_bias_3D: Tensor | None = None,
    tiles: AttentionTiles | None = None,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """Attention of every token (T x H x K). Other tiles than those of the tables are for measuring.

    `deferred_bias_3D`: a bias that is in the states already; its gradient is the sum of theirs over all tokens.
    """
    found = tiles or tiles_for(qkv_T3HK.shape[-1], sequences.max_seqlen, qkv_T3HK.dtype, shared_memory(qkv_T3HK.device))
    work = _Work.of(*_parts(qkv_T3HK), sequences, sequences.cu_seqlens_S1, dropout, deferred_bias_3D, seeds)
    y_THK: Tensor = _TritonAttention.apply(qkv_T3HK.contiguous(), deferred_bias_3D, work, found)
    return y_THK


def triton_attention_subset(
    q_PHK: Tensor,
    kv_T2HK: Tensor,
    sequences: PackedSequences,
    query_cu_seqlens_S1: Tensor,
    dropout: float = 0.0,
    deferred_bias_3D: Tensor | None = None,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """Attention of some tokens to all (P x H x K), under a full mask.

    `query_cu_seqlens_S1`: int32, where the queries of each sequence begin, and the end. A sequence may have any number.
    """
    assert sequences.mask_kind is MaskKind.FULL, "a query subset has a full mask"
    tiles = tiles_for_query_subset(q_PHK.shape[-1], q_PHK.dtype, shared_memory(q_PHK.device))
    work = replace(
        _Work.of(q_PHK, kv_T2HK, sequences, query_cu_seqlens_S1, dropout, deferred_bias_3D, seeds), is_subset=True
    )
    y_PHK: Tensor = _TritonAttentionSubset.apply(
        q_PHK.contiguous(), kv_T2HK.contiguous(), deferred_bias_3D, work, tiles
    )
    return y_PHK


@dataclass(frozen=True, slots=True)
class _Work:
    """What all kernels of a call read."""

    sequences: PackedSequences
    query_cu_seqlens_S1: Tensor
    """Where the queries of each sequence begin."""
    dropout: float
    seeds: Tensor
    needs_bias_grad: bool
    """Whether the gradient of the deferred bias is computed."""
    is_subset: bool = False
    """Whether only some tokens are queries."""

    @staticmethod
    def of(
        q_PHK: Tensor,
        kv_T2HK: Tensor,
        sequences: PackedSequences,
        query_starts_S1: Tensor,
        dropout: float,
        bias: Tensor | None,
        dropout_seeds: DropoutSeeds,
    ) -> _Work:
        """With dropout seeds of its own."""
        num_queries, heads, _ = q_PHK.shape
        seeds = (
            dropout_seeds.take(attention_seed_count(heads, num_queries, len(kv_T2HK)), q_PHK)
            if dropout
            else query_starts_S1
        )
        return _Work(sequences, query_starts_S1, dropout, seeds, bias is not None and bias.requires_grad)

    def bias_partials(self, q_PHK: Tensor, kv_T2HK: Tensor, tiles: AttentionTiles) -> Tensor:
        """Buffers for the partial sums of tiles, one for each at least: of queries, keys and values.

        A short sequence is one tile, and has sums even if it is empty; with longer ones some buffers may stay unused.
        """
        size = min(tiles.queries.queries, tiles.back.keys) if tiles.queries else 0
        parts = self.sequences.num_sequences + (max(len(q_PHK), len(kv_T2HK)) // size + 1 if size else 0)
        shape = (parts if self.needs_bias_grad else 0, 3, *kv_T2HK.shape[2:])
        room = kv_T2HK.new_zeros if size else kv_T2HK.new_empty
        return room(shape, dtype=torch.float32)

    def launch(self, kernel: Any, tile: Tile, step: int, q_PHK: Tensor, kv_T2HK: Tensor, *others: Tensor) -> None:  # noqa: ANN401
        """Start a kernel with a program for every head, or every few, and every `step` tokens of each sequence.

        A kernel for short sequences finds keys and values after the queries.
        """
        total, heads, width = q_PHK.shape
        sequences, takes = self.sequences, set(kernel.arg_names)
        turns = max(few for few in range(1, tile.turns + 1) if heads % few == 0) if "TURNS" in takes else 1
        apart = {"QUERY": q_PHK.stride(0), "KEY": kv_T2HK.stride(0)}
        options = {"TURNS": turns, "OWES": self.needs_bias_grad, "SOME": self.is_subset, **apart}
        read = (q_PHK, kv_T2HK, self.query_cu_seqlens_S1) if "asks" in takes else (q_PHK,)
        sizes = total, sequences.max_seqlen, sequences.window, width**-0.5, self.dropout
        grid = (triton.cdiv(sequences.max_seqlen, step) * (heads // turns) * sequences.num_sequences,)
        with device_of(q_PHK):
            kernel[grid](
                *(*read, sequences.cu_seqlens_S1, self.seeds, *others, *sizes),
                **{name: value for name, value in options.items() if name in takes},
                HEADS=heads,
                WIDTH=width,
                SIGHT=sequences.mask_kind.value,
                DROPS=self.dropout > 0,
                M=tile.queries,
                N=tile.keys,
                num_warps=tile.warps,
                num_stages=tile.stages,
                **({"maxnreg": tile.registers} if tile.registers else {}),
            )

    def run_forward(self, q_PHK: Tensor, kv_T2HK: Tensor, tiles: AttentionTiles) -> tuple[Tensor, Tensor]:
        """The attended states, and the logarithms of the sums of each softmax."""
        total, heads, width = q_PHK.shape
        y_PHK, sums_HP = q_PHK.new_empty(total, heads, width), q_PHK.new_empty(heads, total, dtype=torch.float32)
        kernel = long.forward if tiles.queries else short.forward
        self.launch(kernel, tiles.forward, tiles.forward.queries, q_PHK, kv_T2HK, y_PHK, sums_HP)
        return y_PHK, sums_HP

    def run_backward(
        self,
        read: tuple[Tensor, Tensor],
        made: tuple[Tensor, ...],
        dy_PHK: Tensor,
        to: tuple[Tensor, Tensor],
        tiles: AttentionTiles,
    ) -> Tensor:
        """Write the gradients of queries, keys and values; returns the partial sums of the bias gradient."""
        sums_HP, *y = made
        dy_PHK, partials = dy_PHK.contiguous(), self.bias_partials(*read, tiles)
        if tiles.queries:
            known = sums_HP, torch.empty_like(sums_HP), dy_PHK, *to, partials
            self.launch(long_back.backward_dq, tiles.queries, tiles.queries.queries, *read, *known, *y)
            self.launch(long_back.backward_dkv, tiles.back, tiles.back.keys, *read, *known)
        else:
            self.launch(short.backward, tiles.back, self.sequences.max_seqlen, *read, sums_HP, dy_PHK, to[0], partials)
        return partials


class _TritonAttention(torch.autograd.Function):
    """Both passes. The backward pass of short sequences needs no output: a tile with all keys computes it again."""

    @staticmethod
    def forward(ctx: Any, qkv_T3HK: Tensor, bias_3D: Tensor | None, work: _Work, tiles: AttentionTiles) -> Tensor:  # noqa: ANN401
        y_THK, sums_HT = work.run_forward(*_parts(qkv_T3HK), tiles)
        ctx.save_for_backward(qkv_T3HK, sums_HT, *([y_THK] if tiles.queries else []))
        ctx.work, ctx.tiles, ctx.bias_dtype = work, tiles, None if bias_3D is None else bias_3D.dtype
        return y_THK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_THK: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        qkv_T3HK, *made = ctx.saved_tensors
        dqkv_T3HK = torch.empty_like(qkv_T3HK)
        partials = ctx.work.run_backward(_parts(qkv_T3HK), tuple(made), dy_THK, _parts(dqkv_T3HK), ctx.tiles)
        return (
            dqkv_T3HK,
            reduce_all(partials, ctx.bias_dtype).flatten() if ctx.work.needs_bias_grad else None,
            None,
            None,
        )


class _TritonAttentionSubset(torch.autograd.Function):
    """The same for the queries of some tokens."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        q_PHK: Tensor,
        kv_T2HK: Tensor,
        bias_3D: Tensor | None,
        work: _Work,
        tiles: AttentionTiles,
    ) -> Tensor:
        y_PHK, sums_HP = work.run_forward(q_PHK, kv_T2HK, tiles)
        ctx.save_for_backward(q_PHK, kv_T2HK, sums_HP, y_PHK)
        ctx.work, ctx.tiles, ctx.bias_dtype = work, tiles, None if bias_3D is None else bias_3D.dtype
        return y_PHK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_PHK: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q_PHK, kv_T2HK, *made = ctx.saved_tensors
        to = torch.empty_like(q_PHK), torch.empty_like(kv_T2HK)
        partials = ctx.work.run_backward((q_PHK, kv_T2HK), tuple(made), dy_PHK, to, ctx.tiles)
        return *to, reduce_all(partials, ctx.bias_dtype).flatten() if ctx.work.needs_bias_grad else None, None, None


def _parts(qkv_T3HK: Tensor) -> tuple[Tensor, Tensor]:
    """Views of the queries, and of keys with values."""
    return qkv_T3HK[:, 0], qkv_T3HK[:, 1:]
