"""A name table: which tensor of ours is which tensor of theirs. One table serves export and import.

What arrives: a state dict in one naming. What leaves: the same numbers in the other naming, bit for bit.
What never happens here: a key that is passed over in silence. What no entry names, or an entry misses, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unmask.core.errors import InputError

Names = tuple[str, ...]
Weights = dict[str, Tensor]


class WeightMapping(Protocol):
    """A line of the table. It reads its own names only."""

    @property
    def own_names(self) -> Names:
        """The names on our side."""

    @property
    def hf_names(self) -> Names:
        """The names on their side."""

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Which of its names on one side should be in the state and are not."""

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Their tensors from ours."""

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Our tensors from theirs."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """One tensor. Where a side has several names for it (tied weights), all must agree, and theirs is written once."""

    own_names: Names
    hf_names: Names

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of the names is enough."""
        return () if any(name in state for name in names) else names[:1]

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Under their first name."""
        return {self.hf_names[0]: _require_equal(self.own_names, state)}

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Under each of our names, as a state dict has it."""
        return dict.fromkeys(self.own_names, _require_equal(self.hf_names, state))


@dataclass(frozen=True, slots=True)
class Stacked:
    """One tensor of ours holds several of theirs, equally high, one above the other (query, key, value).

    Where layers share it, it has several names on our side.
    """

    own_names: Names
    hf_names: Names

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of our names, every one of theirs."""
        missing = tuple(name for name in names if name not in state)
        return missing if names == self.hf_names or len(missing) == len(names) else ()

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Cut into equal parts."""
        return dict(zip(self.hf_names, _require_equal(self.own_names, state).chunk(len(self.hf_names)), strict=True))

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Put together again."""
        return dict.fromkeys(self.own_names, torch.cat([state[name] for name in self.hf_names]))


@dataclass(frozen=True, slots=True)
class IdentityLayer:
    """A layer of theirs that we do without, because it leaves every vector of this width as it is."""

    hf_names: Names
    """Weight and bias."""
    width: int

    @property
    def own_names(self) -> Names:
        """Nothing."""
        return ()

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Every one of the names."""
        return tuple(name for name in names if name not in state)

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Ones on the diagonal, and no bias."""
        return dict(zip(self.hf_names, (torch.eye(self.width), torch.zeros(self.width)), strict=True))

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Nothing; refuses a layer that changes what goes through it."""
        for name, tensor in self.to_hf({}).items():
            if not torch.equal(state[name].float().cpu(), tensor):
                raise InputError(f"{name} changes embeddings that are as wide as the network, which cannot be read.")
        return {}


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Names that have no counterpart: a head that the other side has no room for, a buffer that holds 0, 1, 2, …"""

    own_names: Names = ()
    hf_names: Names = ()

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Nothing."""
        return ()

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Stays behind."""
        return {}

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Stays behind."""
        return {}


@dataclass(frozen=True, slots=True)
class WeightTable:
    """All entries of one architecture; `name` is what messages call it."""

    name: str
    mappings: tuple[WeightMapping, ...]

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to write. A key of ours that has no place there, or is missing here, refuses the export."""
        self._check_complete(state, lambda entry: entry.own_names, "the network")
        return _merge(entry.to_hf(state) for entry in self.mappings)

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to load. A key of theirs that has no place here, or is missing there, refuses the import."""
        self._check_complete(state, lambda entry: entry.hf_names, "the weights")
        return _merge(entry.from_hf(state) for entry in self.mappings)

    def _check_complete(self, state: Mapping[str, Tensor], side: Callable[[WeightMapping], Names], who: str) -> None:
        known = {name for entry in self.mappings for name in side(entry)}
        extra = sorted(set(state) - known)
        missing = [name for entry in self.mappings for name in entry.missing(side(entry), state)]
        wrong = [f"has no place for {first_few(extra)}"] if extra else []
        wrong += [f"needs {first_few(missing)}, which is not there"] if missing else []
        if wrong:
            raise InputError(
                f"{self.name} cannot be matched with {who}: it {' and it '.join(wrong)}. Choose the architecture whose "
                "heads are those of the network."
            )


def first_few(names: Iterable[str], max_shown: int = 6) -> str:
    """Names for a message: the first few, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - max_shown} more" if len(every) > max_shown else ""
    return ", ".join(every[:max_shown]) + rest


def _require_equal(names: Names, state: Mapping[str, Tensor]) -> Tensor:
    """The one tensor behind several names."""
    first, *others = (name for name in names if name in state)
    for other in others:
        if not torch.equal(state[first], state[other]):
            raise InputError(
                f"{other} should be the same tensor as {first}, but holds other numbers. Networks whose output matrix "
                "is not the token embedding cannot be converted."
            )
    return state[first]


def _merge(parts: Iterable[Weights]) -> Weights:
    return {name: tensor for part in parts for name, tensor in part.items()}
