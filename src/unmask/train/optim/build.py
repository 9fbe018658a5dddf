"""Builds optimizers from their configuration, with all state allocated; sets rates and clips gradients.

Nothing waits for the device. Every group has `peak`, its full learning rate; `set_rate` multiplies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from unmask.config import optim as optim_module
from unmask.config.optim import LAMB, OptimizerConfig, StableAdamW
from unmask.core.errors import RecipeError
from unmask.train.optim.muon import BatchedMuon, CombinedOptimizer
from unmask.train.optim.param_groups import ParamGroup, ParamKind
from unmask.train.optim.tensorwise_adam import TensorwiseAdam, trust_ratio, update_clip

_FUSED_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})
"""Devices for which torch has AdamW as one kernel."""
_LARGE_STEP = torch.finfo(torch.float32).max
"""A step count at which beta ** steps is 0 for every beta below 1, and which adding 1 does not change."""


def build_optimizer(spec: OptimizerConfig, groups: Sequence[ParamGroup]) -> Optimizer:
    """The optimizer for these groups, at full rate and with all its state in place."""
    if not groups:
        raise RecipeError("An optimizer needs parameters to train, found none: every part of the network is frozen.")
    match spec:
        case optim_module.AdamW():
            return _adamw(spec, groups)
        case LAMB() | StableAdamW():
            return _tensorwise(spec, groups)
        case optim_module.Adamax():
            return _adamax(spec, groups)
        case optim_module.Muon():
            return _muon(spec, groups)


def lr_on_device(optimizer: Optimizer) -> None:
    """Keep rates as numbers on the device, so that captured steps can be replayed with another rate.

    Only for optimizers that `can_skip`: the others count their steps on the host.
    """
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=group["params"][0].device)
        group["capturable"] = True


def supports_found_inf(optimizer: Optimizer) -> bool:
    """Whether a flag on the device can make this optimizer skip a step."""
    return all(
        isinstance(part, BatchedMuon | TensorwiseAdam) or part.defaults.get("fused")
        for part in inner_optimizers(optimizer)
    )


def set_found_inf(optimizer: Optimizer, flag: Tensor) -> None:
    """Make every step read a flag on the device: where it is 1, neither weights nor state change."""
    for part in inner_optimizers(optimizer):
        part.found_inf = flag  # type: ignore[attr-defined]  # torch's own name: the kernel of AdamW reads it


def inner_optimizers(optimizer: Optimizer) -> tuple[Optimizer, ...]:
    """The optimizers that do the work."""
    return optimizer.optimizers if isinstance(optimizer, CombinedOptimizer) else (optimizer,)


def _adamw(spec: optim_module.AdamW, groups: Sequence[ParamGroup]) -> Optimizer:
    fused = all(parameter.device.type in _FUSED_DEVICES for group in groups for parameter in group.parameters.values())
    made = torch.optim.AdamW(
        [_torch_group(group, spec.lr, spec.weight_decay) for group in groups],
        lr=spec.lr,
        betas=spec.betas,
        eps=spec.eps,
        fused=fused,
    )
    _init_adam_state(made, spec.bias_correction, steps_on_device=fused)
    return made


def _tensorwise(spec: LAMB | StableAdamW, groups: Sequence[ParamGroup]) -> Optimizer:
    made = TensorwiseAdam(
        [_torch_group(group, spec.lr, spec.weight_decay) for group in groups],
        trust_ratio if isinstance(spec, LAMB) else update_clip,
        spec.betas,
        spec.eps,
        spec.bias_correction,
    )
    _init_adam_state(made, spec.bias_correction, steps_on_device=True)
    return made


def _adamax(spec: optim_module.Adamax, groups: Sequence[ParamGroup]) -> Optimizer:
    made = torch.optim.Adamax(
        [_torch_group(group, spec.lr, 0.0) for group in groups], lr=spec.lr, betas=spec.betas, eps=spec.eps
    )
    for parameter in (parameter for group in groups for parameter in group.parameters.values()):
        made.state[parameter].update(
            step=torch.tensor(0.0, dtype=torch.float32),
            exp_avg=torch.zeros_like(parameter),
            exp_inf=torch.zeros_like(parameter),
        )
    return made


def _muon(spec: optim_module.Muon, groups: Sequence[ParamGroup]) -> Optimizer:
    matrices = [group for group in groups if group.kind is ParamKind.MATRIX]
    others = [group for group in groups if group.kind is not ParamKind.MATRIX]
    if not matrices or not others:
        raise RecipeError(
            f"Muon needs matrices inside the blocks for itself and other parameters for AdamW, found {len(matrices)} "
            f"groups of the first and {len(others)} of the second. Train both, or use AdamW alone."
        )
    muon = BatchedMuon([_torch_group(group, spec.lr, spec.weight_decay) for group in matrices], spec)
    return CombinedOptimizer(muon, _adamw(spec.adamw, others))


def _torch_group(group: ParamGroup, rate: float, decay: float) -> dict[str, Any]:
    """A group as torch keeps it. Vectors have no weight decay and no factor from tensor norms."""
    whole = group.kind is not ParamKind.VECTOR
    return {
        "params": list(group.parameters.values()),
        "lr": rate * group.lr_scale,
        "peak": rate * group.lr_scale,
        "weight_decay": decay if whole else 0.0,
        "sized": whole,
    }


def _init_adam_state(optimizer: Optimizer, correct_bias: bool, *, steps_on_device: bool) -> None:
    """Adam's state before the first step.

    Without bias correction the count starts so late that the correction is exactly 1: torch's own fused kernel then
    computes BERT's form, at no cost.
    """
    first = 0.0 if correct_bias else _LARGE_STEP
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            device = parameter.device if steps_on_device else torch.device("cpu")
            optimizer.state[parameter].update(
                step=torch.tensor(first, dtype=torch.float32, device=device),
                exp_avg=torch.zeros_like(parameter),
                exp_avg_sq=torch.zeros_like(parameter),
            )
