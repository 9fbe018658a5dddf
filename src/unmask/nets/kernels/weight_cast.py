"""Weights of linear layers in the numbers of the products, and biases that these add, all of them cast at once.

What arrives: a network with float32 weights. What leaves: what it computes from copies of half the size; gradients
reach the weights in float32, and none is asked for where a weight rests.
What never happens here: a rounding that autocast would not make. It casts weights one by one when they are first read,
and their gradients one by one on the way back, which is two launches for each matrix of a network. Only parts with
kernels of their own are served: others may leave autocast where they wish for full numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from unmask.nets.kernels.dispatch import FusableModule, LinearDeferredBias


def call_with_cast_weights(network: nn.Module, dtype: torch.dtype, *args: object) -> Any:  # noqa: ANN401
    """What a network says to what it is given, with the weights of its linear layers as numbers of this type."""
    weights = dict(_weights(network))
    moving = {name: weight for name, weight in weights.items() if weight.requires_grad}
    resting = {name: weight for name, weight in weights.items() if not weight.requires_grad}
    halves = dict(zip(resting, _cast(list(resting.values()), dtype), strict=True))
    if moving:
        cast: tuple[Tensor, ...] = _CastWeights.apply(dtype, *moving.values())  # type: ignore[no-untyped-call]
        halves |= dict(zip(moving, cast, strict=True))
    # A layer that blocks share is named once; tied, torch would put it back once for each of its names.
    return functional_call(network, halves, args, tie_weights=False)


def _weights(network: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """What products read of linear layers in parts that have kernels of their own, by name."""
    for name, part in network.named_modules():
        for child, layer in part.named_children() if isinstance(part, FusableModule) else ():
            # What is more than these two may read its weight in a way of its own.
            for what, tensor in layer.named_parameters() if type(layer) in (nn.Linear, LinearDeferredBias) else ():
                if tensor.dtype is torch.float32 and (what == "weight" or child in part.biased_layers):
                    yield f"{name}.{child}.{what}".lstrip("."), tensor


class _CastWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401
        ctx.set_materialize_grads(False)
        return _cast(weights, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        cast = iter(_cast([one for one in gradients if one is not None], torch.float32))
        return None, *(None if one is None else next(cast) for one in gradients)


@torch.no_grad()
def _cast(tensors: Sequence[Tensor], dtype: torch.dtype) -> tuple[Tensor, ...]:
    made = [torch.empty_like(one, dtype=dtype) for one in tensors]
    if made:
        torch._foreach_copy_(made, list(tensors))
    return tuple(made)
