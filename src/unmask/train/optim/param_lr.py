"""Learning-rate factors of parameters: frozen weights, layer-wise learning-rate decay, gradual unfreezing.

A factor is a function of the parameter's name, without torch, so a method can be chosen before there is a network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from unmask.core.errors import RecipeError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class ParamLR:
    """The learning-rate factor of one parameter, and when its training begins."""

    scale: float = 1.0
    """Which part of the rate it takes; 0: it never moves."""
    from_fraction: float = 0.0
    """The share of the budget after which it begins to move."""

    def __post_init__(self) -> None:
        if self.scale < 0 or not 0 <= self.from_fraction <= 1:
            raise RecipeError(f"A pace needs a scale of at least 0 and a share of the budget between 0 and 1: {self}.")

    @property
    def is_trained(self) -> bool:
        """Whether it is ever trained."""
        return self.scale > 0


FROZEN = ParamLR(0.0)
"""The pace of what never moves."""
ParamLRFn: TypeAlias = Callable[[str], ParamLR]


def full_lr(name: str) -> ParamLR:
    """The full rate from the start."""
    return ParamLR()


def freeze_parameters(module: nn.Module, param_lr: ParamLRFn) -> None:
    """Disable the gradient of parameters that are never trained."""
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(param_lr(name).is_trained)


def delayed_parameters(module: nn.Module, param_lr: ParamLRFn) -> dict[float, list[nn.Parameter]]:
    """The parameters whose training begins later, by the share of the budget at which it does."""
    found: dict[float, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        pace = param_lr(name)
        if pace.is_trained and pace.from_fraction:
            found.setdefault(pace.from_fraction, []).append(parameter)
    return found
