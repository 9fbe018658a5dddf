"""Fine-tuning methods by name, with their options, for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeAlias

from unmask.core.errors import InputError
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.lora import Lora
from unmask.finetuning.methods.protocol import FullFineTuning, Method
from unmask.finetuning.methods.unfreezing import GradualUnfreezing, NormOnly, TopLayers

Options: TypeAlias = Mapping[str, bool | int | float]
"""Options by the field that they set, such as `layer_lr_decay`, `width`, `num_blocks`, `rank`."""

METHODS: tuple[
    type[FullFineTuning | FrozenEncoder | ScalarMixing | Adapter | Lora | NormOnly | TopLayers | GradualUnfreezing], ...
] = (
    FullFineTuning,
    FrozenEncoder,
    ScalarMixing,
    Adapter,
    Lora,
    NormOnly,
    TopLayers,
    GradualUnfreezing,
)
_OPTION_NAMES: Mapping[str, str] = {"width": "--adapter-width", "num_blocks": "--num-top-blocks", "rank": "--lora-rank"}
"""Fields whose command line option has another name."""


_OPTIONS: Mapping[str, str] = {"width": "adapter-width", "num_blocks": "num-top-blocks", "rank": "lora-rank"}
"""The command-line options whose names differ from the fields."""


def method_by_name(name: str, options: Options) -> Method:
    """The method of this name; refuses an option that it does not have, and names the methods that do."""
    methods = {method.name: method for method in METHODS}
    if name not in methods:
        raise InputError(f"There is no method '{name}'. Choose one of: {', '.join(methods)}.")
    for field in options.keys() - _field_names(methods[name]):
        able = [other.name for other in METHODS if field in _field_names(other)]
        option = _OPTION_NAMES.get(field, f"--{field.replace('_', '-')}")
        raise InputError(
            f"{option} has no effect with --method {name}; it is for {' and '.join(able) or 'none'}. Leave it out."
        )
    make: Callable[..., Method] = methods[name]
    return make(**options)


def _field_names(method: type[Method]) -> set[str]:
    return {field.name for field in fields(method)}  # type: ignore[arg-type]
