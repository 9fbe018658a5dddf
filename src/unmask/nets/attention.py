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

from unmask.nets.attend import attend, owing
from unmask.nets.draws import ONE_BY_ONE, Draws, for_attention
from unmask.nets.fused import Lowered, served, states_type
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders, Sight
from unmask.nets.look import look
from unmask.nets.lowering import HALVES, WIDTHS, Lowering, chosen
from unmask.nets.trunk import Trunk

__all__ = ["Attention", "Lowering", "attend", "chosen"]


@dataclass(frozen=True, slots=True)
class Some:
    """The tokens of a batch that ask what they hear, where not all do."""

    places_P: Tensor
    """Where they stand, none before the one ahead of it; one may stand there several times."""
    states_PD: Tensor


class Attention(Lowered):
    """Multi-head self-attention with merged query, key and value projections."""

    adding: ClassVar[tuple[str, ...]] = ("qkv",)

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.heads, self.head_width = trunk.heads, trunk.width // trunk.heads
        self.dropout = trunk.attention_dropout
        self.lowering = Lowering.AUTO
        self.qkv = nn.Linear(trunk.width, 3 * trunk.width)
        self.out = nn.Linear(trunk.width, trunk.width)

    def forward(
        self, x_TD: Tensor, around: Borders | Kept, some: Some | None = None, draws: Draws = ONE_BY_ONE
    ) -> Tensor:
        """Attend inside each sequence. What is kept of the tokens before is what the newest ones see of theirs.

        `some`: the tokens that ask what was heard, if not all do.
        """
        if isinstance(around, Kept):
            assert some is None, "the newest tokens all ask"
            y_THK = around.join(self._project(x_TD))
        elif some is None:
            y_THK = self._attend(x_TD, around.plain(), draws)
        elif self._can_ask(x_TD, around.plain(), len(some.places_P)):
            y_THK = self._ask(x_TD, around.plain(), some, draws)
        else:
            y_THK = self._attend(x_TD, around.plain(), draws).index_select(0, some.places_P)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def asks(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers it asks for, at most."""
        ours = self.fused and self.head_width in WIDTHS
        return (for_attention(self.heads, tokens, tokens),) if ours and self.training and self.dropout else ()

    def keys_values(self, x_TD: Tensor) -> Tensor:
        """What others see of these states (T x 2 x H x K): to be kept while something is written after them."""
        return self._project(x_TD)[:, 1:]

    def _project(self, x_TD: Tensor, owed_3D: Tensor | None = None) -> Tensor:
        """Queries, keys and values; a bias that is owed its gradient is added without one."""
        qkv_TE = self.qkv(x_TD) if owed_3D is None else F.linear(x_TD, self.qkv.weight, owed_3D.detach())
        return qkv_TE.view(len(x_TD), 3, self.heads, -1)

    @property
    def _owed_3D(self) -> Tensor | None:
        """The bias, where it is left to attention, which has the sum that is its gradient in hand on its way back."""
        return self.qkv.bias if self.fused and type(self.qkv) is nn.Linear else None

    def _attend(self, x_TD: Tensor, borders: Borders, draws: Draws) -> Tensor:
        dropout, owed_3D = self.dropout if self.training else 0.0, self._owed_3D
        qkv_T3HK = self._project(x_TD, owed_3D)
        lowering = chosen(self.lowering, qkv_T3HK, dropout, borders.sight, self.fused)
        return attend(lowering, qkv_T3HK, borders, dropout, owed_3D, draws)

    def _can_ask(self, x_TD: Tensor, borders: Borders, asking: int) -> bool:
        """Whether queries can be those of some tokens alone: in our kernels, or on a CPU, whose lists are at hand.

        In kernels only where they are few: those for all tokens of short sequences are faster by themselves.
        """
        plain = type(self.qkv) is nn.Linear and borders.sight is Sight.FULL and not torch.compiler.is_compiling()
        kernel = self.fused and served(x_TD) and self.head_width in WIDTHS and states_type(x_TD) in HALVES
        few = 2 * asking <= len(x_TD) and self.lowering in (Lowering.AUTO, Lowering.KERNEL)
        return plain and (x_TD.is_cpu or (kernel and few))

    def _ask(self, x_TD: Tensor, borders: Borders, some: Some, draws: Draws) -> Tensor:
        """What some tokens hear, with the queries of these alone."""
        dropout, owed_3D, width = self.dropout if self.training else 0.0, self._owed_3D, self.heads * self.head_width
        sizes = [width, 2 * width]
        weight_q, weight_kv = self.qkv.weight.split_with_sizes(sizes)
        bias_q, bias_kv = (self.qkv.bias if owed_3D is None else owed_3D.detach()).split_with_sizes(sizes)
        q_PHK = F.linear(some.states_PD, weight_q, bias_q).view(len(some.states_PD), self.heads, -1)
        kv_T2HK = F.linear(x_TD, weight_kv, bias_kv).view(len(x_TD), 2, self.heads, -1)
        asks_S1 = torch.searchsorted(some.places_P, borders.offsets_S1.to(some.places_P.dtype), out_int32=True)
        lowering = chosen(self.lowering, kv_T2HK, dropout, Sight.FULL, self.fused)
        if lowering is Lowering.KERNEL:
            from unmask.nets.kernels_attention import heard_at

            return heard_at(q_PHK, kv_T2HK, borders, asks_S1, dropout, owed_3D, draws)
        if owed_3D is not None:
            owed_q, owed_kv = owed_3D.split_with_sizes(sizes)
            q_PHK, kv_T2HK = owing(q_PHK, owed_q), owing(kv_T2HK, owed_kv)
        return look(lowering, q_PHK, kv_T2HK, Borders.of(asks_S1), borders, dropout)
