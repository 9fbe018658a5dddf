"""Autograd function of a bias and GELU; the arithmetic is in the Triton kernels.

Shapes: T tokens, F inner width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from unmask.nets.kernels.launch import device_of, grid_by_columns, partial_sums
from unmask.nets.kernels.triton.gelu import bias_gelu_backward, bias_gelu_forward
from unmask.nets.kernels.triton.reduce import reduce_all


class BiasGelu(Function):
    """gelu(y + bias). The product is kept; the backward pass recomputes the activation."""

    @staticmethod
    def forward(ctx: Any, y_TF: Tensor, bias_F: Tensor, tanh: bool) -> Tensor:  # noqa: ANN401
        """One pass."""
        y_TF = y_TF.contiguous()
        rows, width = y_TF.shape
        out_TF = torch.empty_like(y_TF)
        tiles = grid_by_columns(rows, width, y_TF.device)
        ctx.constants = {
            **{"WIDTH": width, "TANH": tanh},
            **{"ROWS": tiles.rows, "BLOCK": tiles.block, "num_warps": tiles.warps},
        }
        with device_of(y_TF):
            bias_gelu_forward[tiles.grid](y_TF, bias_F, out_TF, rows, **ctx.constants)
        ctx.save_for_backward(y_TF, bias_F)
        return out_TF

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_TF: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """One pass, and a sum over programs."""
        y_TF, bias_F = ctx.saved_tensors
        rows, width = y_TF.shape
        tiles = grid_by_columns(rows, width, y_TF.device, per_core=7)
        sums = partial_sums(y_TF, tiles, width)
        dy_TF = torch.empty_like(y_TF)
        with device_of(y_TF):
            bias_gelu_backward[tiles.grid](grad_TF.contiguous(), y_TF, bias_F, dy_TF, sums, rows, **ctx.constants)
        return dy_TF, reduce_all(sums).to(bias_F.dtype), None
