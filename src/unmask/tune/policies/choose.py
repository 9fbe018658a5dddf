"""From the words of a user to a policy.

What arrives: the name of a policy, and the options that were given. What leaves: a `Policy`.
What never happens here: torch, or an option that is silently of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeAlias

from unmask.errors import InputError
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.gradual import Gradual
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.lora import Lora
from unmask.tune.policies.norms import Norms
from unmask.tune.policies.top import Top
from unmask.tune.policy import Full, Policy

Options: TypeAlias = Mapping[str, bool | int | float]
"""What was given, by the name of the field that it sets: decay, width, blocks, rank, move, cache."""

POLICIES: tuple[type[Full | Frozen | Layers | Adapter | Lora | Norms | Top | Gradual], ...] = (
    Full,
    Frozen,
    Layers,
    Adapter,
    Lora,
    Norms,
    Top,
    Gradual,
)


def choose_policy(name: str, options: Options) -> Policy:
    """The policy of this name. Refuses an option that it does not have, and says which policies do."""
    found = {policy.name: policy for policy in POLICIES}
    if name not in found:
        raise InputError(f"There is no policy '{name}'. Choose one of: {', '.join(found)}.")
    for option in options.keys() - _options(found[name]):
        able = [other.name for other in POLICIES if option in _options(other)]
        raise InputError(f"--{option} says nothing to --policy {name}; it is for {' and '.join(able) or 'none'}.")
    make: Callable[..., Policy] = found[name]
    return make(**options)


def _options(policy: type[Policy]) -> set[str]:
    return {field.name for field in fields(policy)}  # type: ignore[arg-type]
