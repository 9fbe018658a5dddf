"""Self-attention over a flat batch of sequences, in the fastest kernel that knows the mask.

No token attends outside its sequence. Beyond plain self-attention there are three extensions, which compose:

- keys of other states: `KeyContext(sequences, states_TD=...)` (a stream that reads another stream);
- a memory: `KeyContext(sequences, memory_SMD=..., memory_valid_SM=...)`, states of earlier tokens in front of each
  sequence, whose coordinates have indices -M to -1 (Transformer-XL). `TransformerEncoder.forward(tokens,
  memory=EncoderMemory(...))` gives each block its own, and `EncoderMemory.extended` makes the next one;
- `SelfAttention.score_bias`: a module `bias(q_SHLK, k_SHMK, query, key)` whose result is added to the scores
  (`nets.attention.backends.ScoreBias`; T5's buckets, Transformer-XL's position terms). Set it when a network is built;
  layers that share one have the same module.

`SelfAttention.rotary` is a module `rotary(x_THK, index_T)` that rotates queries and keys by their place.

Shapes: T tokens, P tokens that ask, S sequences, M memory states, D width, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.attention_pattern import MaskKind
from unmask.config.network import TransformerConfig
from unmask.nets.attention.backends import (
    HALF_DTYPES,
    KERNEL_HEAD_DIMS,
    AttentionBackend,
    MemoryKeys,
    add_bias_grad,
    attention,
    attention_over_keys,
    cross_attention,
    select_backend,
)
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dispatch import FusableModule, compute_dtype, kernel_supports
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, attention_seed_count

__all__ = ["AttentionBackend", "KeyContext", "QuerySubset", "SelfAttention", "attention", "select_backend"]


@dataclass(frozen=True, slots=True)
class QuerySubset:
    """The tokens of a batch whose attention is needed, where not all are."""

    positions_P: Tensor
    """Their places in ascending order; one may occur several times."""
    states_PD: Tensor


@dataclass(frozen=True, slots=True)
class KeyContext:
    """Sequences whose keys and values come from elsewhere: other states, a memory in front of them, or both."""

    sequences: PackedSequences
    states_TD: Tensor | None = None
    """The states that are read; without them the queries' own."""
    memory_SMD: Tensor | None = None
    """States of earlier tokens, the input of this layer then; the latest is the last."""
    memory_valid_SM: Tensor | None = None

    def map_states(self, change: Callable[[Tensor], Tensor]) -> KeyContext:
        """The same change (a norm) to all states that are read."""
        states, memory = self.states_TD, self.memory_SMD
        return replace(
            self,
            states_TD=None if states is None else change(states),
            memory_SMD=None if memory is None else change(memory),
        )


class SelfAttention(FusableModule):
    """Multi-head self-attention with merged query, key and value projections."""

    biased_layers: ClassVar[tuple[str, ...]] = ("qkv",)
    score_bias: nn.Module | None
    rotary: nn.Module | None

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.qkv_width // config.heads
        self.dropout = config.attention_dropout
        self.backend = AttentionBackend.AUTO
        self.qkv = nn.Linear(config.width, 3 * config.qkv_width, config.bias)
        self.out = nn.Linear(config.qkv_width, config.width, config.bias)
        self.query_scale = 1.0 if config.scale_attention else self.head_width**0.5
        """Undoes the division of scores by the root of the head width, where a network has none (T5)."""
        self.score_bias = self.rotary = None

    def forward(
        self,
        x_TD: Tensor,
        context: PackedSequences | KeyContext | KVCache,
        queries: QuerySubset | None = None,
        seeds: DropoutSeeds = PER_CALL_SEEDS,
    ) -> Tensor:
        """Attend inside each sequence; with a KV cache the newest tokens attend to the cached ones and themselves.

        `queries`: the tokens whose attention is needed, if not all are.
        """
        if isinstance(context, KVCache):
            assert queries is None, "all of the newest tokens are queries"
            assert self.score_bias is None, "a KV cache has no score bias yet"
            assert self.rotary is None, "a KV cache has no rotation yet"
            qkv_T3HK = self._project(x_TD)
            if self.query_scale != 1.0:
                qkv_T3HK = torch.cat([qkv_T3HK[:, :1] * self.query_scale, qkv_T3HK[:, 1:]], 1)
            y_THK = context.append_and_attend(qkv_T3HK)
        elif isinstance(context, KeyContext) or self.score_bias is not None or self.query_scale != 1.0:
            keys = context if isinstance(context, KeyContext) else KeyContext(context)
            y_THK = self._attend_over_keys(x_TD, keys)
            y_THK = y_THK if queries is None else y_THK.index_select(0, queries.positions_P)
        elif queries is None:
            y_THK = self._attend(x_TD, context.simplified(), seeds)
        elif self._can_use_subset(x_TD, context.simplified(), len(queries.positions_P)):
            y_THK = self._attend_subset(x_TD, context.simplified(), queries, seeds)
        else:
            y_THK = self._attend(x_TD, context.simplified(), seeds).index_select(0, queries.positions_P)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def dropout_seed_counts(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers one call draws, at most."""
        ours = self.fused and self.head_width in KERNEL_HEAD_DIMS
        return (attention_seed_count(self.heads, tokens, tokens),) if ours and self.training and self.dropout else ()

    def keys_values(self, x_TD: Tensor) -> Tensor:
        """Keys and values of these states (T x 2 x H x K), for a KV cache or a memory."""
        return self._project_part(x_TD, slice(1, 3))

    def _project(self, x_TD: Tensor, bias_3D: Tensor | None = None) -> Tensor:
        """Queries, keys and values; a deferred bias is added without a gradient."""
        qkv_TE = self.qkv(x_TD) if bias_3D is None else F.linear(x_TD, self.qkv.weight, bias_3D.detach())
        return qkv_TE.view(len(x_TD), 3, self.heads, -1)

    def _project_part(self, x_TD: Tensor, part: slice) -> Tensor:
        """Only some of queries (0), keys (1) and values (2)."""
        if type(self.qkv) is not nn.Linear:  # what wraps the layer, such as LoRA, needs all of it
            return self._project(x_TD)[:, part]
        rows = slice(*(one * self.heads * self.head_width for one in (part.start, part.stop)))
        bias = None if self.qkv.bias is None else self.qkv.bias[rows]
        return F.linear(x_TD, self.qkv.weight[rows], bias).view(len(x_TD), -1, self.heads, self.head_width)

    @property
    def _deferred_bias_3D(self) -> Tensor | None:
        """The bias, where its gradient is left to attention, whose backward pass has the sum that it is."""
        return self.qkv.bias if self.fused and self.rotary is None and type(self.qkv) is nn.Linear else None

    def _attend(self, x_TD: Tensor, sequences: PackedSequences, seeds: DropoutSeeds) -> Tensor:
        dropout, bias_3D = self.dropout if self.training else 0.0, self._deferred_bias_3D
        qkv_T3HK = self._project(x_TD, bias_3D)
        if self.rotary is not None:
            q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
            index_T = sequences.index_T()
            qkv_T3HK = torch.stack([self.rotary(q_THK, index_T), self.rotary(k_THK, index_T), v_THK], 1)
        backend = select_backend(self.backend, qkv_T3HK, dropout, sequences.mask_kind, self.fused)
        return attention(backend, qkv_T3HK, sequences, dropout, bias_3D, seeds)

    def _attend_over_keys(self, x_TD: Tensor, context: KeyContext) -> Tensor:
        """The general form: keys of other states, a memory in front of them, a bias on the scores."""
        if context.states_TD is None:
            qkv_T3HK = self._project(x_TD)
            q_THK, kv_T2HK = qkv_T3HK[:, 0], qkv_T3HK[:, 1:]
        else:
            q_THK, kv_T2HK = self._project_part(x_TD, slice(0, 1))[:, 0], self.keys_values(context.states_TD)
        if self.rotary is not None:
            assert context.memory_SMD is None, "rotated keys of a memory would need its positions"
            index_T = context.sequences.index_T()
            q_THK = self.rotary(q_THK, index_T)
            kv_T2HK = torch.stack([self.rotary(kv_T2HK[:, 0], index_T), kv_T2HK[:, 1]], 1)
        q_THK = q_THK if self.query_scale == 1.0 else q_THK * self.query_scale
        memory = None
        if context.memory_SMD is not None and context.memory_valid_SM is not None:
            kv_SM2HK = self.keys_values(context.memory_SMD.flatten(0, 1))
            memory = MemoryKeys(
                kv_SM2HK.view(*context.memory_SMD.shape[:2], *kv_SM2HK.shape[1:]), context.memory_valid_SM
            )
        dropout = self.dropout if self.training else 0.0
        return attention_over_keys(self.backend, q_THK, kv_T2HK, context.sequences, dropout, memory, self.score_bias)

    def _can_use_subset(self, x_TD: Tensor, sequences: PackedSequences, num_queries: int) -> bool:
        """Whether queries of some tokens alone can be projected: in the Triton kernels, or on a CPU.

        In kernels only where they are few: those for all tokens of short sequences are faster.
        """
        plain = (
            type(self.qkv) is nn.Linear
            and self.qkv.bias is not None
            and self.rotary is None
            and sequences.mask_kind is MaskKind.FULL
        )
        plain = plain and not torch.compiler.is_compiling()
        kernel = (
            self.fused
            and kernel_supports(x_TD)
            and self.head_width in KERNEL_HEAD_DIMS
            and compute_dtype(x_TD) in HALF_DTYPES
        )
        few = 2 * num_queries <= len(x_TD) and self.backend in (AttentionBackend.AUTO, AttentionBackend.TRITON)
        return plain and (x_TD.is_cpu or (kernel and few))

    def _attend_subset(
        self, x_TD: Tensor, sequences: PackedSequences, queries: QuerySubset, seeds: DropoutSeeds
    ) -> Tensor:
        """Attention of some tokens, with the queries of these alone."""
        dropout, bias_3D, width = (
            self.dropout if self.training else 0.0,
            self._deferred_bias_3D,
            self.heads * self.head_width,
        )
        sizes = [width, 2 * width]
        weight_q, weight_kv = self.qkv.weight.split_with_sizes(sizes)
        bias_q, bias_kv = (self.qkv.bias if bias_3D is None else bias_3D.detach()).split_with_sizes(sizes)
        q_PHK = F.linear(queries.states_PD, weight_q, bias_q).view(len(queries.states_PD), self.heads, -1)
        kv_T2HK = F.linear(x_TD, weight_kv, bias_kv).view(len(x_TD), 2, self.heads, -1)
        query_starts_S1 = torch.searchsorted(
            queries.positions_P, sequences.cu_seqlens_S1.to(queries.positions_P.dtype), out_int32=True
        )
        backend = select_backend(self.backend, kv_T2HK, dropout, MaskKind.FULL, self.fused)
        if backend is AttentionBackend.TRITON:
            from unmask.nets.kernels.attention import triton_attention_subset

            return triton_attention_subset(q_PHK, kv_T2HK, sequences, query_starts_S1, dropout, bias_3D, seeds)
        if bias_3D is not None:
            deferred_q, deferred_kv = bias_3D.split_with_sizes(sizes)
            q_PHK, kv_T2HK = add_bias_grad(q_PHK, deferred_q), add_bias_grad(kv_T2HK, deferred_kv)
        return cross_attention(backend, q_PHK, kv_T2HK, PackedSequences.of(query_starts_S1), sequences, dropout)
