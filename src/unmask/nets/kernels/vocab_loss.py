"""Fused LM head: logits, cross-entropy with its gradient, and sampling.

The token table is read as it is; the copy in the dtype of the product is padded, because a vocabulary that 64 does not
divide makes every product with it slow.

Shapes: P positions, E embedding width, V vocabulary, W the same rounded up.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from unmask.nets.kernels.dispatch import compute_dtype
from unmask.nets.kernels.launch import device_of, grid_by_columns, partial_sums, power_of_two
from unmask.nets.kernels.triton.reduce import reduce_all
from unmask.nets.kernels.triton.vocab_loss import cross_entropy_backward, cross_entropy_forward, sample_tokens_kernel

_ROW_MULTIPLE = 64
_BLOCK, _WARPS = 4096, 8
"""How much of a row a program looks at at once."""


def linear_cross_entropy(
    x_PE: Tensor, table_VE: Tensor, bias_V: Tensor, answers_P: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of the losses and the number of right answers; also the logits, until the gradient takes their place.

    Targets below 0 are ignored.
    """
    found: tuple[Tensor, Tensor, Tensor] = LinearCrossEntropy.apply(x_PE, table_VE, bias_V, answers_P)  # type: ignore[no-untyped-call]
    return found


@torch.no_grad()
def sample_tokens(logits_PV: Tensor, uniform_P: Tensor) -> Tensor:
    """A token for each position, in proportion to its probability: where the running sum exceeds the uniform number."""
    places, vocabulary = logits_PV.shape
    drawn_P = torch.empty(places, dtype=torch.int64, device=logits_PV.device)
    block = min(_BLOCK, power_of_two(vocabulary))
    with device_of(logits_PV):
        sample_tokens_kernel[places,](
            *(logits_PV, uniform_P, drawn_P),
            **{"VOCABULARY": vocabulary, "STRIDE": logits_PV.stride(0), "BLOCK": block, "num_warps": _WARPS},
        )
    return drawn_P


class LinearCrossEntropy(Function):
    """Logits, and their cross-entropy with the answers."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x_PE: Tensor,
        table_VE: Tensor,
        bias_V: Tensor,
        answers_P: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A product and one pass over it."""
        half, places, vocabulary = compute_dtype(x_PE), len(x_PE), len(table_VE)
        wide_WE, bias_W = padded_table(table_VE, half), padded_table(bias_V, half)
        x_PE = x_PE.to(half)
        logits_PW = F.linear(x_PE, wide_WE, bias_W)
        loss_P, whole_P = (torch.empty(places, dtype=torch.float32, device=x_PE.device) for _ in range(2))
        right_P = torch.empty(places, dtype=torch.int8, device=x_PE.device)
        ctx.constants = {"VOCABULARY": vocabulary, "STRIDE": logits_PW.shape[1]}
        block = min(_BLOCK, power_of_two(vocabulary))
        with device_of(x_PE):
            cross_entropy_forward[places,](
                *(logits_PW, answers_P, loss_P, right_P, whole_P), **ctx.constants, BLOCK=block, num_warps=_WARPS
            )
        ctx.save_for_backward(x_PE, wide_WE, logits_PW, whole_P, answers_P)
        ctx.types = table_VE.dtype, bias_V.dtype
        right, logits_PV = right_P.sum(), logits_PW[:, :vocabulary]
        ctx.mark_non_differentiable(right, logits_PV)
        ctx.set_materialize_grads(False)  # or zeros as large as the logits would be written for those that have none
        return loss_P.sum(), right, logits_PV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """One pass over the logits, in whose place the gradient is written, and two products."""
        x_PE, wide_WE, logits_PW, whole_P, answers_P = ctx.saved_tensors
        places, vocabulary = len(x_PE), ctx.constants["VOCABULARY"]
        tiles = grid_by_columns(places, logits_PW.shape[1], x_PE.device, per_core=8)
        sums = partial_sums(x_PE, tiles, vocabulary)
        with device_of(x_PE):
            cross_entropy_backward[tiles.grid](
                *(logits_PW, answers_P, whole_P, scale, sums, places),
                **ctx.constants,
                **{"ROWS": tiles.rows, "BLOCK": tiles.block, "num_warps": tiles.warps},
            )
        torch.autograd.graph.increment_version(logits_PW)  # a second backward pass is refused, and not wrong
        states, table, *_ = ctx.needs_input_grad
        dtable_VE = (logits_PW.T @ x_PE)[:vocabulary].to(ctx.types[0]) if table else None
        return logits_PW @ wide_WE if states else None, dtable_VE, reduce_all(sums).to(ctx.types[1]), None


def padded_table(table_V: Tensor, dtype: torch.dtype) -> Tensor:
    """The table in the dtype of the product, with rows of zeros up to a multiple of 64."""
    wide = -(-len(table_V) // _ROW_MULTIPLE) * _ROW_MULTIPLE
    if wide == len(table_V):
        return table_V.to(dtype)
    made = torch.empty(wide, *table_V.shape[1:], dtype=dtype, device=table_V.device)
    made[: len(table_V)].copy_(table_V)
    made[len(table_V) :].zero_()
    return made
