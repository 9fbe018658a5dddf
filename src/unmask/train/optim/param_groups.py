"""Parameter groups: every trainable parameter in one group, by kind (from shape and module) and learning-rate scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from torch import nn


class ParamKind(StrEnum):
    """What sort of tensor a parameter is."""

    MATRIX = "matrix"
    """A matrix inside a block: it maps states to states."""
    TABLE = "table"
    """Any other parameter of two dimensions or more: embeddings, heads, projections around the blocks."""
    VECTOR = "vector"
    """Norm weights and biases: they never decay."""


@dataclass(frozen=True, slots=True)
class ParamGroup:
    """Parameters of one kind with one scale of the learning rate, by name."""

    kind: ParamKind
    lr_scale: float
    parameters: Mapping[str, nn.Parameter]


def unit_lr_scale(name: str) -> float:
    """The same rate for every parameter."""
    return 1.0


def group_parameters(
    module: nn.Module, blocks: Iterable[nn.Module], lr_scale: Callable[[str], float] = unit_lr_scale
) -> tuple[ParamGroup, ...]:
    """The trainable parameters of a module, each once: a shared one goes under the first of its names.

    `scale` is the learning-rate factor of the parameter of that name (layer-wise decay). A parameter that is frozen
    now is left out; one that is unfrozen later is frozen only after the groups were made.
    """
    hidden = {parameter for block in blocks for parameter in block.parameters()}
    sorted_out: dict[tuple[ParamKind, float], dict[str, nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            place = _kind(parameter, parameter in hidden), lr_scale(name)
            sorted_out.setdefault(place, {})[name] = parameter
    return tuple(ParamGroup(kind, part, parameters) for (kind, part), parameters in sorted_out.items())


def _kind(parameter: nn.Parameter, inside: bool) -> ParamKind:
    if parameter.dim() < 2:
        return ParamKind.VECTOR
    return ParamKind.MATRIX if inside and parameter.dim() == 2 else ParamKind.TABLE
