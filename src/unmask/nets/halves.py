"""Weights of linear layers in the numbers of the products, all of them cast at once.

What arrives: a network with float32 weights. What leaves: what it computes from copies of half the size; gradients
reach the weights in float32.
What never happens here: a rounding that autocast would not make. It casts weights one by one when they are first read,
and their gradients one by one on the way back, which is two launches for each matrix of a network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from unmask.nets.fused import Open


def with_halves(network: nn.Module, dtype: torch.dtype, *given: object) -> Any:  # noqa: ANN401
    """What a network says to what it is given, with the weights of its linear layers as numbers of this type."""
    plain = (nn.Linear, Open)  # what is more than these may read its weight in a way of its own
    layers = {name: part for name, part in network.named_modules() if type(part) in plain}
    weights = {f"{name}.weight": layer.weight for name, layer in layers.items() if layer.weight.dtype is torch.float32}
    halves = _Halves.apply(dtype, *weights.values())  # type: ignore[no-untyped-call]
    # A layer that blocks share is named once; tied, torch would put it back once for each of its names.
    return functional_call(network, dict(zip(weights, halves, strict=True)), given, tie_weights=False)


class _Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401
        ctx.set_materialize_grads(False)
        return _cast(weights, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        cast = iter(_cast([one for one in gradients if one is not None], torch.float32))
        return None, *(None if one is None else next(cast) for one in gradients)


def _cast(tensors: Any, dtype: torch.dtype) -> tuple[Tensor, ...]:  # noqa: ANN401
    made = [torch.empty_like(one, dtype=dtype) for one in tensors]
    if made:
        torch._foreach_copy_(made, list(tensors))
    return tuple(made)
