"""Adam with one more factor for each tensor: LAMB's trust ratio, or the update clipping of StableAdamW.

The update is w -= rate * factor * (m / (sqrt(v) + epsilon) + decay * w). The factors stay tensors on the device.

Shapes: N tensors of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer

Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class TensorUpdates:
    """The weights, updates and averages of a group of tensors."""

    weights: Tensors
    gradients: Tensors
    denominators: Tensors
    """sqrt(v), corrected for its start at zero if configured."""
    updates: Tensors
    eps: float
    sized: bool
    """Whether these are whole matrices or tables rather than norms and biases."""


Factor: TypeAlias = Callable[[TensorUpdates], Tensor]
"""One number for each tensor."""


def trust_ratio(tensors: TensorUpdates) -> Tensor:
    """LAMB: the norm of the weights over the norm of the update; 1 if either is 0, and for norms and biases."""
    if not tensors.sized:
        return tensors.weights[0].new_ones(len(tensors.weights))
    weight_N = torch.stack(torch._foreach_norm(tensors.weights))
    update_N = torch.stack(torch._foreach_norm(tensors.updates))
    return torch.where((weight_N > 0) & (update_N > 0), weight_N / update_N, 1.0)


def update_clip(tensors: TensorUpdates) -> Tensor:
    """StableAdamW: 1 / max(1, RMS), with RMS the root mean square of g / max(sqrt(v), epsilon)."""
    surprises = torch._foreach_div(tensors.gradients, torch._foreach_clamp_min(tensors.denominators, tensors.eps))
    norms = torch._foreach_norm(surprises)
    torch._foreach_div_(norms, [math.sqrt(gradient.numel()) for gradient in tensors.gradients])
    return 1 / torch.stack(norms).clamp(min=1)


class TensorwiseAdam(Optimizer):
    """Adam with decoupled decay whose step on each tensor is multiplied by a factor that the whole tensor decides."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        factor: Factor,
        betas: tuple[float, float],
        eps: float,
        bias_correction: bool,
    ) -> None:
        super().__init__(groups, {"betas": betas, "eps": eps})
        self.factor, self.bias_correction = factor, bias_correction
        self.found_inf = torch.zeros(0)
        """Nothing, or a flag on the device: where it is 1, a step changes nothing."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        keep = 1 - self.found_inf if self.found_inf.dim() == 0 else 1.0
        for group in self.param_groups:
            weights = [parameter for parameter in group["params"] if parameter.grad is not None]
            if weights:
                moves = self._compute_updates(group, weights, keep)
                far_N = self.factor(moves) * (group["lr"] * keep)
                torch._foreach_mul_(moves.updates, far_N.unbind())
                torch._foreach_sub_(weights, moves.updates)

    def _compute_updates(self, group: dict[str, Any], weights: list[Tensor], keep: float | Tensor) -> TensorUpdates:
        """Update the averages with the gradients, and compute the updates."""
        beta_m, beta_v = group["betas"]
        gradients = self._zero_if_skipped([weight.grad for weight in weights if weight.grad is not None])
        states = [self.state[weight] for weight in weights]
        first, second = [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]
        _lerp(first, gradients, (1 - beta_m) * keep)
        _lerp(second, torch._foreach_mul(gradients, gradients), (1 - beta_v) * keep)
        ages = [state["step"] for state in states]
        # As a list: a single tensor for all of them would be read back on CUDA.
        torch._foreach_add_(ages, [keep] * len(ages))  # type: ignore[list-item]
        roots = torch._foreach_sqrt(second)
        if self.bias_correction:
            torch._foreach_div_(roots, _bias_correction(torch.stack(ages), beta_v).sqrt().unbind())
        updates = torch._foreach_div(first, torch._foreach_add(roots, group["eps"]))
        if self.bias_correction:
            torch._foreach_div_(updates, _bias_correction(torch.stack(ages), beta_m).unbind())
        if group["weight_decay"]:
            torch._foreach_add_(updates, weights, alpha=group["weight_decay"])
        return TensorUpdates(weights, gradients, roots, updates, group["eps"], group["sized"])

    def _zero_if_skipped(self, gradients: list[Tensor]) -> Tensors:
        """Zeros in place of the gradients of a skipped step: NaN times 0 would stay NaN."""
        if self.found_inf.dim():
            return gradients
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        parts = torch.split(torch.where(self.found_inf > 0, 0, flat), [gradient.numel() for gradient in gradients])
        return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]


def _lerp(averages: Tensors, values: Tensors, share: float | Tensor) -> None:
    """Move averages by a share towards some values."""
    ways = torch._foreach_sub(values, averages)
    torch._foreach_mul_(ways, share)
    torch._foreach_add_(averages, ways)


def _bias_correction(age_N: Tensor, beta: float) -> Tensor:
    """Bias correction 1 - beta ** age, accurate for small ages too."""
    return -torch.expm1(age_N * math.log(beta))
