"""Adam with one more factor for each tensor: LAMB's trust ratio, or the update clipping of StableAdamW.

What arrives: gradients. What leaves: moved weights, w -= rate * factor * (m / (sqrt(v) + epsilon) + decay * w).
What never happens here: a value read back from the device. The factors stay tensors.

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
class Moves:
    """What a group of tensors is about to do, tensor by tensor."""

    weights: Tensors
    gradients: Tensors
    roots: Tensors
    """sqrt(v), corrected for its start at zero if the spec asks for it."""
    updates: Tensors
    epsilon: float
    sized: bool
    """Whether these are whole matrices or tables rather than norms and biases."""


Factor: TypeAlias = Callable[[Moves], Tensors]


def trust_ratio(moves: Moves) -> Tensors:
    """LAMB: the norm of the weights over the norm of the update; 1 if either is 0, and for norms and biases."""
    if not moves.sized:
        return [moves.weights[0].new_ones(())] * len(moves.weights)
    weight_N = torch.stack(torch._foreach_norm(moves.weights))
    update_N = torch.stack(torch._foreach_norm(moves.updates))
    ratio_N = torch.where((weight_N > 0) & (update_N > 0), weight_N / update_N, 1.0)
    return ratio_N.unbind()


def update_clip(moves: Moves) -> Tensors:
    """StableAdamW: 1 / max(1, RMS), with RMS the root mean square of g / max(sqrt(v), epsilon)."""
    surprises = torch._foreach_div(moves.gradients, torch._foreach_clamp_min(moves.roots, moves.epsilon))
    norms = torch._foreach_norm(surprises)
    torch._foreach_div_(norms, [math.sqrt(gradient.numel()) for gradient in moves.gradients])
    return (1 / torch.stack(norms).clamp(min=1)).unbind()


class TensorwiseAdam(Optimizer):
    """Adam with decoupled decay whose step on each tensor is multiplied by a factor that the whole tensor decides."""

    def __init__(
        self, groups: list[dict[str, Any]], factor: Factor, betas: tuple[float, float], epsilon: float
    ) -> None:
        super().__init__(groups, {"betas": betas, "eps": epsilon})
        self.factor = factor

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            weights = [parameter for parameter in group["params"] if parameter.grad is not None]
            if weights:
                moves = self._moves(group, weights)
                torch._foreach_mul_(moves.updates, self.factor(moves))
                torch._foreach_add_(weights, moves.updates, alpha=-group["lr"])

    def _moves(self, group: dict[str, Any], weights: list[Tensor]) -> Moves:
        """Let the averages take in the gradients, and make the updates."""
        beta_m, beta_v = group["betas"]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        states = [self.state[weight] for weight in weights]
        first, second = [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]
        torch._foreach_lerp_(first, gradients, 1 - beta_m)
        torch._foreach_mul_(second, beta_v)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta_v)
        ages = [_grow(state["step"]) for state in states]
        roots = torch._foreach_sqrt(second)
        _correct(roots, [math.sqrt(1 - beta_v**age) for age in ages])
        updates = torch._foreach_div(first, torch._foreach_add(roots, group["eps"]))
        _correct(updates, [1 - beta_m**age for age in ages])
        if group["weight_decay"]:
            torch._foreach_add_(updates, weights, alpha=group["weight_decay"])
        return Moves(weights, gradients, roots, updates, group["eps"], group["sized"])


def _grow(step: Tensor) -> float:
    """Count one step more. The count lives on the CPU, so reading it waits for nothing."""
    return float(step.add_(1))


def _correct(averages: Tensors, weights: list[float]) -> None:
    """Divide averages by what they have seen so far. Old ones have seen it all, and a pass over memory is saved."""
    if min(weights) < 1:
        torch._foreach_div_(averages, weights)
