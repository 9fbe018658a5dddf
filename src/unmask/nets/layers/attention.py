"""Self-attention over a flat batch of sequences, lowered to the fastest kernel that can express it.

What arrives: states of all tokens, and the borders inside which they see each other: all of it, their past or what is
near; or the newest tokens of texts that are being written, and what was kept of those before them. Also the tokens
that ask, if not all do.
What leaves: the attended states. What never happens here: one sequence seeing another.

Shapes: T tokens, P tokens that ask, S sequences, L the longest, D width, H heads, K width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import TransformerConfig
from unmask.nets.attention.backends import add_bias_grad, attention
from unmask.nets.attention.cross_backends import cross_attention
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.attention.select_backend import HALF_DTYPES, KERNEL_HEAD_DIMS, AttentionBackend, select_backend
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.kernels.dispatch import FusableModule, compute_dtype, kernel_supports
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, attention_seed_count

__all__ = ["SelfAttention", "AttentionBackend", "attention", "select_backend"]


@dataclass(frozen=True, slots=True)
class QuerySubset:
    """The tokens of a batch that ask what they hear, where not all do."""

    positions_P: Tensor
    """Where they stand, none before the one ahead of it; one may stand there several times."""
    states_PD: Tensor


class SelfAttention(FusableModule):
    """Multi-head self-attention with merged query, key and value projections."""

    biased_layers: ClassVar[tuple[str, ...]] = ("qkv",)

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.qkv_width // config.heads
        self.dropout = config.attention_dropout
        self.backend = AttentionBackend.AUTO
        self.qkv = nn.Linear(config.width, 3 * config.qkv_width, config.bias)
        self.out = nn.Linear(config.qkv_width, config.width, config.bias)

    def forward(
        self,
        x_TD: Tensor,
        context: PackedSequences | KVCache,
        queries: QuerySubset | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """Attend inside each sequence. What is kept of the tokens before is what the newest ones see of theirs.

        `some`: the tokens that ask what was heard, if not all do.
        """
        if isinstance(context, KVCache):
            assert queries is None, "the newest tokens all ask"
            y_THK = context.append_and_attend(self._project(x_TD))
        elif queries is None:
            y_THK = self._attend(x_TD, context.simplified(), seeds)
        elif self._can_use_subset(x_TD, context.simplified(), len(queries.positions_P)):
            y_THK = self._attend_subset(x_TD, context.simplified(), queries, seeds)
        else:
            y_THK = self._attend(x_TD, context.simplified(), seeds).index_select(0, queries.positions_P)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def dropout_seed_counts(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers it asks for, at most."""
        ours = self.fused and self.head_width in KERNEL_HEAD_DIMS
        return (attention_seed_count(self.heads, tokens, tokens),) if ours and self.training and self.dropout else ()

    def keys_values(self, x_TD: Tensor) -> Tensor:
        """What others see of these states (T x 2 x H x K): to be kept while something is written after them."""
        return self._project(x_TD)[:, 1:]

    def _project(self, x_TD: Tensor, owed_3D: Tensor | None = None) -> Tensor:
        """Queries, keys and values; a bias that is owed its gradient is added without one."""
        qkv_TE = self.qkv(x_TD) if owed_3D is None else F.linear(x_TD, self.qkv.weight, owed_3D.detach())
        return qkv_TE.view(len(x_TD), 3, self.heads, -1)

    @property
    def _deferred_bias_3D(self) -> Tensor | None:
        """The bias, where it is left to attention, which has the sum that is its gradient in hand on its way back."""
        return self.qkv.bias if self.fused and type(self.qkv) is nn.Linear else None

    def _attend(self, x_TD: Tensor, borders: PackedSequences, draws: DropoutSeeds) -> Tensor:
        dropout, owed_3D = self.dropout if self.training else 0.0, self._deferred_bias_3D
        qkv_T3HK = self._project(x_TD, owed_3D)
        lowering = select_backend(self.backend, qkv_T3HK, dropout, borders.mask_kind, self.fused)
        return attention(lowering, qkv_T3HK, borders, dropout, owed_3D, draws)

    def _can_use_subset(self, x_TD: Tensor, borders: PackedSequences, asking: int) -> bool:
        """Whether queries can be those of some tokens alone: in our kernels, or on a CPU, whose lists are at hand.

        In kernels only where they are few: those for all tokens of short sequences are faster by themselves.
        """
        plain = type(self.qkv) is nn.Linear and borders.mask_kind is MaskKind.FULL and not torch.compiler.is_compiling()
        kernel = (
            self.fused
            and kernel_supports(x_TD)
            and self.head_width in KERNEL_HEAD_DIMS
            and compute_dtype(x_TD) in HALF_DTYPES
        )
        few = 2 * asking <= len(x_TD) and self.backend in (AttentionBackend.AUTO, AttentionBackend.TRITON)
        return plain and (x_TD.is_cpu or (kernel and few))

    def _attend_subset(self, x_TD: Tensor, borders: PackedSequences, some: QuerySubset, draws: DropoutSeeds) -> Tensor:
        """What some tokens hear, with the queries of these alone."""
        dropout, owed_3D, width = (
            self.dropout if self.training else 0.0,
            self._deferred_bias_3D,
            self.heads * self.head_width,
        )
        sizes = [width, 2 * width]
        weight_q, weight_kv = self.qkv.weight.split_with_sizes(sizes)
        bias_q, bias_kv = (self.qkv.bias if owed_3D is None else owed_3D.detach()).split_with_sizes(sizes)
        q_PHK = F.linear(some.states_PD, weight_q, bias_q).view(len(some.states_PD), self.heads, -1)
        kv_T2HK = F.linear(x_TD, weight_kv, bias_kv).view(len(x_TD), 2, self.heads, -1)
        asks_S1 = torch.searchsorted(some.positions_P, borders.cu_seqlens_S1.to(some.positions_P.dtype), out_int32=True)
        lowering = select_backend(self.backend, kv_T2HK, dropout, MaskKind.FULL, self.fused)
        if lowering is AttentionBackend.TRITON:
            from unmask.nets.kernels.attention import triton_attention_subset

            return triton_attention_subset(q_PHK, kv_T2HK, borders, asks_S1, dropout, owed_3D, draws)
        if owed_3D is not None:
            owed_q, owed_kv = owed_3D.split_with_sizes(sizes)
            q_PHK, kv_T2HK = add_bias_grad(q_PHK, owed_q), add_bias_grad(kv_T2HK, owed_kv)
        return cross_attention(lowering, q_PHK, kv_T2HK, PackedSequences.of(asks_S1), borders, dropout)
