"""From an optimiser as a value to one that moves weights, and what is done around a step.

What arrives: a frozen spec and groups of parameters.
What leaves: a `torch.optim.Optimizer` whose whole state exists from the start as plain tensors; rates set by a
multiplier; gradients of limited length.
What never happens here: waiting for the device. Norms and steps stay where the parameters are.

Every group of a built optimiser carries `peak`, its full learning rate; `set_rate` multiplies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from unmask import optimising
from unmask.errors import RecipeError
from unmask.optimising import LAMB, Optimiser, StableAdamW
from unmask.train.optim_groups import Group, Kind
from unmask.train.optim_muon import Muon, Together
from unmask.train.optim_tensorwise import TensorwiseAdam, trust_ratio, update_clip

_FUSED = frozenset({"cpu", "cuda", "mps", "xpu"})
"""Devices for which torch has AdamW as one kernel."""
_LONG_AGO = torch.finfo(torch.float32).max
"""A step count at which beta ** steps is 0 for every beta below 1, and which adding 1 does not change."""


def build(optimiser: Optimiser, groups: Sequence[Group]) -> Optimizer:
    """The optimiser for these groups, at full rate and with all its state in place."""
    if not groups:
        raise RecipeError("An optimiser needs parameters to train, found none: every part of the network is frozen.")
    match optimiser:
        case optimising.AdamW():
            return _adamw(optimiser, groups)
        case LAMB() | StableAdamW():
            return _tensorwise(optimiser, groups)
        case optimising.Adamax():
            return _adamax(optimiser, groups)
        case optimising.Muon():
            return _muon(optimiser, groups)


def set_rate(optimizer: Optimizer, multiplier: float) -> None:
    """Let the next step take this part of the full rate, in every group."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["peak"] * multiplier)
        else:
            group["lr"] = group["peak"] * multiplier


def rates_on_device(optimizer: Optimizer) -> None:
    """Keep rates as numbers on the device, so that steps which were recorded with one rate can be taken with another.

    Only for optimisers that `can_skip`: the others count their steps on the host.
    """
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=group["params"][0].device)
        group["capturable"] = True


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> Tensor:
    """Shorten all gradients by one factor so that their common norm is at most `limit`; 0 leaves them as they are.

    The norm before shortening comes back as a tensor on the device, so nothing waits for it.
    """
    kept = list(parameters)
    norm = get_total_norm([parameter.grad for parameter in kept if parameter.grad is not None])
    if limit:
        clip_grads_with_norm_(kept, limit, norm)
    return norm


def can_skip(optimizer: Optimizer) -> bool:
    """Whether a flag on the device can keep this optimiser from moving anything."""
    return all(isinstance(part, Muon | TensorwiseAdam) or part.defaults.get("fused") for part in parts_of(optimizer))


def skip_when(optimizer: Optimizer, flag: Tensor) -> None:
    """Let every step look at a flag on the device: where it is 1, neither weights nor memories change."""
    for part in parts_of(optimizer):
        part.found_inf = flag  # type: ignore[attr-defined]  # torch's own name: the kernel of AdamW looks at it


def parts_of(optimizer: Optimizer) -> tuple[Optimizer, ...]:
    """The optimisers that do the work."""
    return optimizer.parts if isinstance(optimizer, Together) else (optimizer,)


def _adamw(spec: optimising.AdamW, groups: Sequence[Group]) -> Optimizer:
    fused = all(parameter.device.type in _FUSED for group in groups for parameter in group.parameters.values())
    made = torch.optim.AdamW(
        [_options(group, spec.rate, spec.decay) for group in groups],
        lr=spec.rate,
        betas=spec.betas,
        eps=spec.epsilon,
        fused=fused,
    )
    _start_averages(made, spec.correct_bias, steps_on_device=fused)
    return made


def _tensorwise(spec: LAMB | StableAdamW, groups: Sequence[Group]) -> Optimizer:
    made = TensorwiseAdam(
        [_options(group, spec.rate, spec.decay) for group in groups],
        trust_ratio if isinstance(spec, LAMB) else update_clip,
        spec.betas,
        spec.epsilon,
        spec.correct_bias,
    )
    _start_averages(made, spec.correct_bias, steps_on_device=True)
    return made


def _adamax(spec: optimising.Adamax, groups: Sequence[Group]) -> Optimizer:
    made = torch.optim.Adamax(
        [_options(group, spec.rate, 0.0) for group in groups], lr=spec.rate, betas=spec.betas, eps=spec.epsilon
    )
    for parameter in (parameter for group in groups for parameter in group.parameters.values()):
        made.state[parameter].update(
            step=torch.tensor(0.0, dtype=torch.float32),
            exp_avg=torch.zeros_like(parameter),
            exp_inf=torch.zeros_like(parameter),
        )
    return made


def _muon(spec: optimising.Muon, groups: Sequence[Group]) -> Optimizer:
    matrices = [group for group in groups if group.kind is Kind.MATRIX]
    others = [group for group in groups if group.kind is not Kind.MATRIX]
    if not matrices or not others:
        raise RecipeError(
            f"Muon needs matrices inside the blocks for itself and other parameters for AdamW, found {len(matrices)} "
            f"groups of the first and {len(others)} of the second. Train both, or use AdamW alone."
        )
    muon = Muon([_options(group, spec.rate, spec.decay) for group in matrices], spec)
    return Together(muon, _adamw(spec.rest, others))


def _options(group: Group, rate: float, decay: float) -> dict[str, Any]:
    """A group as torch keeps it. Vectors do not decay, and take no part in what is sized by the norm of a tensor."""
    whole = group.kind is not Kind.VECTOR
    return {
        "params": list(group.parameters.values()),
        "lr": rate * group.scale,
        "peak": rate * group.scale,
        "weight_decay": decay if whole else 0.0,
        "sized": whole,
    }


def _start_averages(optimizer: Optimizer, correct_bias: bool, *, steps_on_device: bool) -> None:
    """Adam's state before the first step.

    Without bias correction the count starts so late that the correction is exactly 1: torch's own fused kernel then
    computes BERT's form, at no cost.
    """
    first = 0.0 if correct_bias else _LONG_AGO
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            device = parameter.device if steps_on_device else torch.device("cpu")
            optimizer.state[parameter].update(
                step=torch.tensor(first, dtype=torch.float32, device=device),
                exp_avg=torch.zeros_like(parameter),
                exp_avg_sq=torch.zeros_like(parameter),
            )
