"""From the words of a user to a policy.

What arrives: the name of a policy, and the options that were given. What leaves: a `Policy`.
What never happens here: torch, or an option that is silently of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeAlias

from unmask.core.errors import InputError
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder
from unmask.finetuning.methods.gradual_unfreezing import GradualUnfreezing
from unmask.finetuning.methods.lora import Lora
from unmask.finetuning.methods.norm_only import NormOnly
from unmask.finetuning.methods.protocol import FullFineTuning, Method
from unmask.finetuning.methods.scalar_mix import ScalarMixing
from unmask.finetuning.methods.top_layers import TopLayers

Options: TypeAlias = Mapping[str, bool | int | float]
"""What was given, by the name of the field that it sets: decay, width, blocks, rank, move, cache."""

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


_OPTIONS: Mapping[str, str] = {"width": "adapter-width", "num_blocks": "num-top-blocks", "rank": "lora-rank"}
"""The command-line options whose names differ from the fields."""


def method_by_name(name: str, options: Options) -> Method:
    """The policy of this name. Refuses an option that it does not have, and says which policies do."""
    found = {policy.name: policy for policy in METHODS}
    if name not in found:
        raise InputError(f"There is no method '{name}'. Choose one of: {', '.join(found)}.")
    for option in options.keys() - _option_names(found[name]):
        able = [other.name for other in METHODS if option in _option_names(other)]
        written = _OPTIONS.get(option, option.replace("_", "-"))
        raise InputError(
            f"--{written} has no effect with --method {name}; it is for {' and '.join(able) or 'none'}. Leave it out."
        )
    make: Callable[..., Method] = found[name]
    return make(**options)


def _option_names(policy: type[Method]) -> set[str]:
    return {field.name for field in fields(policy)}  # type: ignore[arg-type]
