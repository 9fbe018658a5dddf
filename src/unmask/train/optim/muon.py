"""Muon for the matrices inside blocks, equal shapes batched, with AdamW for the rest as one optimizer.

The update is that of `torch.optim.Muon`, bit for bit on a CPU. Matrices of a shape are stacked, up to a bound, because
a product of one small matrix does not fill a GPU. No value is read back from the device.

Shapes: N matrices of A x B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from unmask.config import optim as optim_module
from unmask.config.optim import UpdateScale

_MAX_STACKED = 1 << 25
"""Entries that are stacked at once: the work needs about twenty bytes for each."""
_NS_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""The polynomial of a round, as Keller Jordan published it: a x + b x³ + c x⁵."""
_EPS = 1e-7


class BatchedMuon(Optimizer):
    """Momentum orthogonalized by Newton-Schulz iterations, in bfloat16."""

    def __init__(self, groups: list[dict[str, Any]], spec: optim_module.Muon) -> None:
        super().__init__(groups, {})
        self.spec = spec
        self.found_inf = torch.zeros(0)
        """Nothing, or a flag on the device: where it is 1, a step changes nothing."""
        for parameter in (parameter for group in groups for parameter in group["params"]):
            self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            for alike in _stacks([parameter for parameter in group["params"] if parameter.grad is not None]):
                self._update(alike, group["lr"], group["weight_decay"])

    def _update(self, weights: list[Tensor], rate: float | Tensor, decay: float) -> None:
        """One step for matrices of one shape: Nesterov momentum and an update by its orthogonal part."""
        keep, momenta = self.spec.momentum, [self.state[weight]["momentum_buffer"] for weight in weights]
        gradient_NAB = torch.stack([weight.grad for weight in weights if weight.grad is not None])
        old_NAB, weight_NAB = torch.stack(momenta), torch.stack(weights)
        new_NAB = old_NAB.lerp(gradient_NAB, 1 - keep)
        update_NAB = newton_schulz(gradient_NAB.lerp_(new_NAB, keep), self.spec.ns_steps)
        moved_NAB = weight_NAB.mul(1 - rate * decay)
        _subtract_scaled(moved_NAB, update_NAB, rate * _update_scale(self.spec.update_scale, *weights[0].shape))
        torch._foreach_copy_(momenta, self._unless_skipped(new_NAB, old_NAB).unbind())
        torch._foreach_copy_(weights, self._unless_skipped(moved_NAB, weight_NAB).unbind())

    def _unless_skipped(self, new_NAB: Tensor, old_NAB: Tensor) -> Tensor:
        return torch.where(self.found_inf > 0, old_NAB, new_NAB) if self.found_inf.dim() == 0 else new_NAB


def newton_schulz(x_NAB: Tensor, steps: int) -> Tensor:
    """Matrices with the same singular vectors, and singular values near 1."""
    a, b, c = _NS_COEFFICIENTS
    tall = x_NAB.shape[1] > x_NAB.shape[2]
    y_NAB = x_NAB.bfloat16().mT if tall else x_NAB.bfloat16()
    y_NAB = y_NAB / torch.linalg.vector_norm(y_NAB, dim=(1, 2), keepdim=True).clamp(min=_EPS)
    for _ in range(steps):
        gram_NAA = y_NAB @ y_NAB.mT
        y_NAB = torch.baddbmm(y_NAB, torch.baddbmm(gram_NAA, gram_NAA, gram_NAA, beta=b, alpha=c), y_NAB, beta=a)
    return y_NAB.mT if tall else y_NAB


def _subtract_scaled(from_NAB: Tensor, along_NAB: Tensor, far: float | Tensor) -> None:
    """Subtract so much of a matrix in place; how much may be a number on the device."""
    if isinstance(far, Tensor):
        from_NAB.addcmul_(along_NAB.to(from_NAB.dtype), far, value=-1)
    else:
        from_NAB.add_(along_NAB, alpha=-far)


def _update_scale(sizing: UpdateScale, rows: int, columns: int) -> float:
    """The factor of the learning rate for a matrix of this shape."""
    match sizing:
        case UpdateScale.ORIGINAL:
            return math.sqrt(max(1, rows / columns))
        case UpdateScale.MATCH_ADAMW:
            return 0.2 * math.sqrt(max(rows, columns))


def _stacks(weights: list[Tensor]) -> Iterator[list[Tensor]]:
    """The matrices of each shape, in stacks of bounded size."""
    alike: dict[torch.Size, list[Tensor]] = {}
    for weight in weights:
        alike.setdefault(weight.shape, []).append(weight)
    for shape, same in alike.items():
        many = max(_MAX_STACKED // shape.numel(), 1)
        yield from (same[start : start + many] for start in range(0, len(same), many))


class CombinedOptimizer(Optimizer):
    """One optimizer that steps two. Groups and state are the same objects inside and outside."""

    def __init__(self, one: Optimizer, other: Optimizer) -> None:
        super().__init__([*one.param_groups, *other.param_groups], {})
        self.optimizers = (one, other)
        for part in self.optimizers:
            self.state.update(part.state)
        self._share_state()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move the parameters of both."""
        for part in self.optimizers:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over saved groups and state; torch makes new objects of them, so they are shared again."""
        super().load_state_dict(state_dict)
        self._share_state()

    def _share_state(self) -> None:
        one, other = self.optimizers
        count = len(one.param_groups)
        one.param_groups, other.param_groups = self.param_groups[:count], self.param_groups[count:]
        one.state = other.state = self.state
