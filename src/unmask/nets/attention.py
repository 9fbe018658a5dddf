"""Self-attention over a flat batch of sequences, lowered to the fastest kernel that can express it.

What arrives: states of all tokens, and the borders inside which they see each other: all of it, their past or what is
near; or the newest tokens of texts that are being written, and what was kept of those before them.
What leaves: the attended states. What never happens here: one sequence seeing another.

Shapes: T tokens, S sequences, L the longest, D width, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.draws import ONE_BY_ONE, Draws, for_attention
from unmask.nets.dropout import drop
from unmask.nets.fused import Lowered
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders, Sight, from_grid, to_grid
from unmask.nets.lowering import WIDTHS, Lowering, chosen
from unmask.nets.near import near
from unmask.nets.trunk import Trunk

__all__ = ["Attention", "Lowering", "attend", "chosen"]


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
        self, x_TD: Tensor, around: Borders | Kept, only_P: Tensor | None = None, draws: Draws = ONE_BY_ONE
    ) -> Tensor:
        """Attend inside each sequence. What is kept of the tokens before is what the newest ones see of theirs.

        `only_P`: the places at which anybody wants to know what was heard, if not all.
        """
        y_THK = around.join(self._project(x_TD)) if isinstance(around, Kept) else self._attend(x_TD, around, draws)
        y_TD = y_THK.flatten(1)
        out_TD: Tensor = self.out(y_TD if only_P is None else y_TD.index_select(0, only_P))
        return out_TD

    def asks(self, tokens: int) -> tuple[int, ...]:
        """How many random numbers it asks for, at most."""
        ours = self.fused and self.head_width in WIDTHS
        return (for_attention(self.heads, tokens),) if ours and self.training and self.dropout else ()

    def keys_values(self, x_TD: Tensor) -> Tensor:
        """What others see of these states (T x 2 x H x K): to be kept while something is written after them."""
        return self._project(x_TD)[:, 1:]

    def _project(self, x_TD: Tensor, owed_3D: Tensor | None = None) -> Tensor:
        """Queries, keys and values; a bias that is owed its gradient is added without one."""
        qkv_TE = self.qkv(x_TD) if owed_3D is None else F.linear(x_TD, self.qkv.weight, owed_3D.detach())
        return qkv_TE.view(len(x_TD), 3, self.heads, -1)

    def _attend(self, x_TD: Tensor, borders: Borders, draws: Draws) -> Tensor:
        dropout, borders = self.dropout if self.training else 0.0, borders.plain()
        # The gradient of the bias is a sum that attention has in hand on its way back.
        owed_3D = self.qkv.bias if self.fused and type(self.qkv) is nn.Linear else None
        qkv_T3HK = self._project(x_TD, owed_3D)
        lowering = chosen(self.lowering, qkv_T3HK, dropout, borders.sight, self.fused)
        return attend(lowering, qkv_T3HK, borders, dropout, owed_3D, draws)


def attend(
    lowering: Lowering,
    qkv_T3HK: Tensor,
    borders: Borders,
    dropout: float = 0.0,
    owed_3D: Tensor | None = None,
    draws: Draws = ONE_BY_ONE,
) -> Tensor:
    """What every token hears, computed in one way; `AUTO` is none, `chosen` says which it stands for.

    `owed_3D`: a bias that is in the states already, and has yet to get its gradient.
    """
    if lowering is Lowering.KERNEL:
        from unmask.nets.kernels_attention import attended

        return attended(qkv_T3HK, borders, dropout, owed_3D, draws=draws)
    if owed_3D is not None:
        qkv_T3HK = _Owing.apply(qkv_T3HK, owed_3D)  # type: ignore[no-untyped-call]
    return _LOWERINGS[lowering](qkv_T3HK, borders, dropout)


class _Owing(torch.autograd.Function):
    """States as they are, and the gradient that a bias in them is owed."""

    @staticmethod
    def forward(ctx: Any, qkv_T3HK: Tensor, owed_3D: Tensor) -> Tensor:  # noqa: ANN401
        ctx.dtype = owed_3D.dtype
        return qkv_T3HK.view_as(qkv_T3HK)

    @staticmethod
    def backward(ctx: Any, dqkv_T3HK: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        return dqkv_T3HK, dqkv_T3HK.sum(0).flatten().to(ctx.dtype)


def _grids(qkv_T3HK: Tensor, borders: Borders) -> tuple[Tensor, ...]:
    """Queries, keys and values as grids with the heads in front, laid out in one go."""
    return to_grid(qkv_T3HK, borders).permute(2, 0, 3, 1, 4).unbind(0)


def _dense(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _grids(qkv_T3HK, borders)
    scores_SHLL = q_SHLK @ k_SHLK.transpose(-1, -2) * q_SHLK.shape[-1] ** -0.5
    scores_SHLL = scores_SHLL.masked_fill(~borders.seen_SLL()[:, None], -torch.inf)
    weights_SHLL = F.dropout(scores_SHLL.softmax(-1), dropout)
    return from_grid((weights_SHLL @ v_SHLK).transpose(1, 2), borders)


def _each(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    if borders.sight is Sight.NEAR:
        return near(qkv_T3HK, borders, dropout)
    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    lengths = borders.offsets_S1.diff().tolist()
    q_HTK = (q_THK * q_THK.shape[-1] ** -0.5).transpose(0, 1).split_with_sizes(lengths, 1)
    k_HKT = k_THK.permute(1, 2, 0).split_with_sizes(lengths, 2)
    v_HTK = v_THK.transpose(0, 1).split_with_sizes(lengths, 1)
    scores = _scores_each(q_HTK, k_HKT, borders)
    y_HTK = [drop(scores_HLL.softmax(-1), dropout) @ v for scores_HLL, v in zip(scores, v_HTK, strict=True)]
    return torch.cat(y_HTK, dim=1).transpose(0, 1)


def _scores_each(q_HTK: Sequence[Tensor], k_HKT: Sequence[Tensor], borders: Borders) -> Iterator[Tensor]:
    """The scores of one sequence after another, each made when it is asked for."""
    scores = (q @ k for q, k in zip(q_HTK, k_HKT, strict=True))
    if borders.sight is Sight.FULL:
        yield from scores
        return
    hidden_SLL = (~borders.seen_SLL()).expand(borders.count, -1, -1)
    for scores_HLL, hidden_LL in zip(scores, hidden_SLL, strict=True):
        length = scores_HLL.shape[-1]
        yield scores_HLL.masked_fill_(hidden_LL[:length, :length], -torch.inf)


def _sdpa(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    q_SHLK, k_SHLK, v_SHLK = _grids(qkv_T3HK, borders)
    past = borders.sight is Sight.PAST  # padding stands behind every token that counts, so it needs no mask of its own
    plain = past or (borders.equal and borders.sight is Sight.FULL)
    mask = None if plain else borders.seen_SLL()[:, None]
    y_SHLK = F.scaled_dot_product_attention(q_SHLK, k_SHLK, v_SHLK, mask, dropout, is_causal=past)
    return from_grid(y_SHLK.transpose(1, 2), borders)


def _flex(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    total, device = len(qkv_T3HK), qkv_T3HK.device
    token_T, home_T = torch.arange(total, device=device), borders.home_T(total)
    shown_T = _shown(borders, token_T, home_T)
    reach = borders.reach if borders.sight is Sight.NEAR else total

    def sees(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same_home = home_T[query] == home_T[key]
        return same_home & (shown_T[key] | (key <= query)) & ((query - key).abs() <= reach)

    mask = create_block_mask(sees, None, None, total, total, device=str(device))
    q, k, v = (x_THK.transpose(0, 1)[None] for x_THK in qkv_T3HK.unbind(1))
    y_1HTK = flex_attention(q, k, v, block_mask=mask)
    assert isinstance(y_1HTK, Tensor)
    return y_1HTK[0].transpose(0, 1)


def _shown(borders: Borders, token_T: Tensor, home_T: Tensor) -> Tensor:
    """Which tokens the whole of their sequence sees (as far as it reaches), and not only what stands behind them."""
    match borders.sight:
        case Sight.FULL | Sight.NEAR:
            return torch.ones_like(token_T, dtype=torch.bool)
        case Sight.PAST:
            return torch.zeros_like(token_T, dtype=torch.bool)
        case Sight.PREFIX:
            return token_T < (borders.offsets_S1[:-1] + borders.prefix_S)[home_T]


def _varlen(qkv_T3HK: Tensor, borders: Borders, dropout: float) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    q_THK, k_THK, v_THK = qkv_T3HK.unbind(1)
    ends = borders.offsets_S1, borders.offsets_S1, borders.longest, borders.longest
    y_THK = varlen_attn(q_THK, k_THK, v_THK, *ends, window_size=_window(borders))
    assert isinstance(y_THK, Tensor)
    return y_THK


def _window(borders: Borders) -> tuple[int, int]:
    """How far a token sees to the left and to the right; -1 is all of it."""
    if borders.sight is Sight.NEAR:
        return borders.reach, borders.reach
    return -1, 0 if borders.sight is Sight.PAST else -1


_LOWERINGS = {
    Lowering.DENSE: _dense,
    Lowering.EACH: _each,
    Lowering.SDPA: _sdpa,
    Lowering.FLEX: _flex,
    Lowering.VARLEN: _varlen,
}
