"""Weight tables: the mapping between our weight names and those of Hugging Face, for export and import.

The numbers are mapped bit for bit. Unknown and missing keys are refused.
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
    """One mapping of a table. It reads its own names only."""

    @property
    def own_names(self) -> Names:
        """Our names."""

    @property
    def hf_names(self) -> Names:
        """Hugging Face's names."""

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """The names of one side that are required and missing in the state."""

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Hugging Face's tensors from ours."""

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Our tensors from Hugging Face's."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """One tensor under other names. Tied weights have several names: all must be equal, and the first is written."""

    own_names: Names
    hf_names: Names

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of the names is enough."""
        return () if any(name in state for name in names) else names[:1]

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The tensor under their first name."""
        return {self.hf_names[0]: _require_equal(self.own_names, state)}

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The tensor under each of our names."""
        return dict.fromkeys(self.own_names, _require_equal(self.hf_names, state))


@dataclass(frozen=True, slots=True)
class Stacked:
    """One tensor of unmask that concatenates several of transformers of equal size (query, key, value).

    Shared layers give it several names on our side.
    """

    own_names: Names
    hf_names: Names

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of our names is enough; all of theirs are required."""
        missing = tuple(name for name in names if name not in state)
        return missing if names == self.hf_names or len(missing) == len(names) else ()

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The tensor split into equal parts."""
        return dict(zip(self.hf_names, _require_equal(self.own_names, state).chunk(len(self.hf_names)), strict=True))

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The parts concatenated."""
        return dict.fromkeys(self.own_names, torch.cat([state[name] for name in self.hf_names]))


@dataclass(frozen=True, slots=True)
class IdentityLayer:
    """A layer of theirs that must be the identity, and that we do not have."""

    hf_names: Names
    """Weight and bias."""
    width: int

    @property
    def own_names(self) -> Names:
        """None."""
        return ()

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """All names are required."""
        return tuple(name for name in names if name not in state)

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The identity matrix and a zero bias."""
        return dict(zip(self.hf_names, (torch.eye(self.width), torch.zeros(self.width)), strict=True))

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Nothing; refuses a layer that is not the identity."""
        for name, tensor in self.to_hf({}).items():
            if not torch.equal(state[name].float().cpu(), tensor):
                raise InputError(
                    f"{name} changes embeddings that are as wide as the network, which cannot be read. Take another."
                )
        return {}


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Names without a counterpart: a head that the other side lacks, or a buffer of position ids."""

    own_names: Names = ()
    hf_names: Names = ()

    def missing(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """None is required."""
        return ()

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Nothing."""
        return {}

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """Nothing."""
        return {}


@dataclass(frozen=True, slots=True)
class WeightTable:
    """All mappings of one architecture; `name` is used in messages."""

    name: str
    mappings: tuple[WeightMapping, ...]

    def to_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to write. Unknown and missing keys of unmask are refused."""
        self._check_complete(state, lambda mapping: mapping.own_names, "the network")
        return _merge(mapping.to_hf(state) for mapping in self.mappings)

    def from_hf(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to load. Unknown and missing keys of theirs are refused."""
        self._check_complete(state, lambda mapping: mapping.hf_names, "the weights")
        return _merge(mapping.from_hf(state) for mapping in self.mappings)

    def _check_complete(self, state: Mapping[str, Tensor], side: Callable[[WeightMapping], Names], who: str) -> None:
        known = {name for mapping in self.mappings for name in side(mapping)}
        extra = sorted(set(state) - known)
        missing = [name for mapping in self.mappings for name in mapping.missing(side(mapping), state)]
        wrong = [f"has no place for {first_few(extra)}"] if extra else []
        wrong += [f"needs {first_few(missing)}, which is not there"] if missing else []
        if wrong:
            raise InputError(
                f"{self.name} cannot be matched with {who}: it {' and it '.join(wrong)}. Choose the architecture whose "
                "heads are those of the network."
            )


def first_few(names: Iterable[str], max_shown: int = 6) -> str:
    """The first few names for a message, and the number of the others."""
    every = list(names)
    rest = f" and {len(every) - max_shown} more" if len(every) > max_shown else ""
    return ", ".join(every[:max_shown]) + rest


def _require_equal(names: Names, state: Mapping[str, Tensor]) -> Tensor:
    """The tensor that several names stand for; refuses unequal ones."""
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
