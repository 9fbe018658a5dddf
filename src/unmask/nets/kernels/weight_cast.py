"""Cast all linear weights (and biases added inside the GEMM) to the compute type with one multi-tensor copy per step.

Gradients reach the weights in float32; frozen weights get none. The rounding is that of autocast, which casts weight by
weight, two launches for each matrix. Only modules with kernels (`FusableModule`) are covered: others may leave
autocast to compute in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from unmask.nets.kernels.dispatch import FusableModule, LinearDeferredBias


def call_with_cast_weights(network: nn.Module, dtype: torch.dtype, *args: object) -> Any:  # noqa: ANN401
    """Call a network with the weights of its linear layers cast to `dtype`."""
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
    """The weights of linear layers in fusable modules, by name."""
    for name, part in network.named_modules():
        for child, layer in part.named_children() if isinstance(part, FusableModule) else ():
            # A subclass may read its weight in another way.
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
