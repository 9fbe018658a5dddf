"""Autograd functions of the end of a post-norm branch and of embeddings; the arithmetic is in the Triton kernels.

The states are returned twice, so that the sub-layer and the residual sum have separate gradients (`split_residual`).

Shapes: T tokens, D width, V rows of the token table.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from unmask.nets.kernels.dispatch import compute_dtype
from unmask.nets.kernels.launch import device_of, grid_by_rows, grid_by_warps, partial_sums
from unmask.nets.kernels.triton.embedding import embed_backward, embed_forward
from unmask.nets.kernels.triton.norm import add_norm_backward, add_norm_forward
from unmask.nets.kernels.triton.reduce import reduce_all


class BiasDropoutResidualNorm(Function):
    """norm(x + drop(y + bias)). Saved for the backward pass: x and y, which it sums again, and two numbers a row."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x_TD: Tensor,
        y_TD: Tensor,
        bias_D: Tensor,
        gamma_D: Tensor,
        beta_D: Tensor,
        seed: Tensor,
        rate: float,
        epsilon: float,
    ) -> tuple[Tensor, Tensor]:
        """One pass."""
        x_TD, y_TD = x_TD.contiguous(), y_TD.contiguous()
        rows, width = y_TD.shape
        out_TD = torch.empty_like(y_TD)
        # Two tensors, each beginning at a round address: Triton would make kernels anew for other ones.
        mean_T, rstd_T = (torch.empty(rows, dtype=torch.float32, device=y_TD.device) for _ in range(2))
        tiles = grid_by_warps(rows, width, y_TD.device)
        with device_of(y_TD):
            add_norm_forward[tiles.grid](
                *(x_TD, y_TD, bias_D, gamma_D, beta_D, seed, out_TD, mean_T, rstd_T, rows, rate, epsilon),
                **{"WIDTH": width, "DROPS": rate > 0},
                **{"ROWS": tiles.rows, "BLOCK": tiles.block, "num_warps": tiles.warps, "STAGES": tiles.stages},
            )
        ctx.save_for_backward(x_TD, y_TD, bias_D, gamma_D, seed, mean_T, rstd_T)
        ctx.rate = rate
        ctx.set_materialize_grads(False)
        return out_TD, out_TD.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_TD: Tensor | None, again_TD: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """One pass, and a sum over programs."""
        x_TD, y_TD, bias_D, gamma_D, seed, mean_T, rstd_T = ctx.saved_tensors
        if grad_TD is None and again_TD is None:
            return (None,) * 8
        grad_TD, again_TD, two = _in_order(grad_TD, again_TD)
        rows, width = y_TD.shape
        tiles = grid_by_warps(rows, width, y_TD.device, per_core=4)
        sums = partial_sums(y_TD, tiles, 3, width)
        dx_TD = torch.empty_like(x_TD)
        # Without dropout both gradients are the same numbers; if also of the same type, they are written once.
        dy_TD = torch.empty_like(y_TD) if ctx.rate else dx_TD
        with device_of(y_TD):
            add_norm_backward[tiles.grid](
                *(grad_TD, again_TD, x_TD, y_TD, bias_D, gamma_D, seed, mean_T, rstd_T, dx_TD, dy_TD, sums),
                *(rows, ctx.rate),
                **{"WIDTH": width, "TWO": two, "DROPS": ctx.rate > 0},
                **{"ROWS": tiles.rows, "BLOCK": tiles.block, "num_warps": tiles.warps, "STAGES": tiles.stages},
            )
        dgamma_D, dbeta_D, dbias_D = reduce_all(sums).to(gamma_D.dtype)
        return dx_TD, dy_TD.to(y_TD.dtype), dbias_D.to(bias_D.dtype), dgamma_D, dbeta_D, None, None, None


class EmbedNorm(Function):
    """drop(norm(token + position + segment)). Only ids are saved; the backward pass reads the tables again."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        ids: tuple[Tensor, Tensor, Tensor],
        seed: Tensor,
        rate: float,
        epsilon: float,
        tokens_VD: Tensor,
        positions_LD: Tensor,
        segments_SD: Tensor | None,
        gamma_D: Tensor,
        beta_D: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """One pass. `ids`: of tokens, positions and segments."""
        rows, width = len(ids[0]), tokens_VD.shape[1]
        out_TD = torch.empty(rows, width, dtype=compute_dtype(tokens_VD), device=tokens_VD.device)
        segments = tokens_VD if segments_SD is None else segments_SD
        tiles = grid_by_rows(rows, width, tokens_VD.device)
        ctx.constants = {
            **{"WIDTH": width, "SEGMENTS": 0 if segments_SD is None else len(segments_SD), "DROPS": rate > 0},
            **{"ROWS": tiles.rows, "BLOCK": tiles.block, "num_warps": tiles.warps},
        }
        with device_of(out_TD):
            embed_forward[tiles.grid](
                *(*ids, tokens_VD, positions_LD, segments, gamma_D, beta_D, seed, out_TD, rows, rate, epsilon),
                **ctx.constants,
            )
        ctx.save_for_backward(*ids, tokens_VD, positions_LD, segments, gamma_D, seed)
        ctx.numbers = rate, epsilon
        ctx.set_materialize_grads(False)
        return out_TD, out_TD.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_TD: Tensor | None, again_TD: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """One pass and a sum over programs; with deterministic sums also a sort."""
        ids_T, position_T, segment_T, tokens_VD, positions_LD, segments_SD, gamma_D, seed = ctx.saved_tensors
        if grad_TD is None and again_TD is None:
            return (None,) * 9
        grad_TD, again_TD, two = _in_order(grad_TD, again_TD)
        rows, width = grad_TD.shape
        tiles = grid_by_rows(rows, width, grad_TD.device, per_core=3)
        sums = partial_sums(grad_TD, tiles, 4, width)
        adds = not torch.are_deterministic_algorithms_enabled()
        dtokens_VD, dpositions_LD = (
            torch.zeros_like(table if adds else table[:0], dtype=torch.float32) for table in (tokens_VD, positions_LD)
        )
        dsum_TD = torch.empty(0 if adds else rows, width, dtype=torch.float32, device=grad_TD.device)
        rate, epsilon = ctx.numbers
        with device_of(grad_TD):
            embed_backward[tiles.grid](
                *(grad_TD, again_TD, ids_T, position_T, segment_T, tokens_VD, positions_LD, segments_SD, gamma_D),
                *(seed, dtokens_VD, dpositions_LD, dsum_TD, sums, rows, rate, epsilon),
                **{"TWO": two, "ADDS": adds},
                **ctx.constants,
            )
        if not adds:
            add_up = torch.ops.aten.embedding_dense_backward
            dtokens_VD = add_up(dsum_TD, ids_T, len(tokens_VD), -1, False)
            dpositions_LD = add_up(dsum_TD, position_T, len(positions_LD), -1, False)
        dgamma_D, dbeta_D, all_D, second_D = reduce_all(sums)
        dsegments = {0: None, 1: all_D[None], 2: torch.stack([all_D - second_D, second_D])}
        return (
            *(None, None, None, None),
            *(dtokens_VD.to(tokens_VD.dtype), dpositions_LD.to(positions_LD.dtype)),
            *(dsegments[ctx.constants["SEGMENTS"]], dgamma_D.to(gamma_D.dtype), dbeta_D.to(gamma_D.dtype)),
        )


def _in_order(grad_TD: Tensor | None, again_TD: Tensor | None) -> tuple[Tensor, Tensor, bool]:
    """The gradients that came, and whether there are two; if not, one of them stands in both places."""
    come = [one.contiguous() for one in (grad_TD, again_TD) if one is not None]
    return come[0], come[-1], len(come) == 2
