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

from unmask.errors import InputError

Names = tuple[str, ...]
Weights = dict[str, Tensor]


class Entry(Protocol):
    """A line of the table. It reads its own names only."""

    @property
    def ours(self) -> Names:
        """The names on our side."""

    @property
    def theirs(self) -> Names:
        """The names on their side."""

    def needed(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Which of its names on one side should be in the state and are not."""

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """Their tensors from ours."""

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """Our tensors from theirs."""


@dataclass(frozen=True, slots=True)
class Same:
    """One tensor. Where a side has several names for it (tied weights), all must agree, and theirs is written once."""

    ours: Names
    theirs: Names

    def needed(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of the names is enough."""
        return () if any(name in state for name in names) else names[:1]

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """Under their first name."""
        return {self.theirs[0]: _agreed(self.ours, state)}

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """Under each of our names, as a state dict has it."""
        return dict.fromkeys(self.ours, _agreed(self.theirs, state))


@dataclass(frozen=True, slots=True)
class Stacked:
    """One tensor of ours holds several of theirs, equally high, one above the other (query, key, value).

    Where layers share it, it has several names on our side.
    """

    ours: Names
    theirs: Names

    def needed(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """One of our names, every one of theirs."""
        missing = tuple(name for name in names if name not in state)
        return missing if names == self.theirs or len(missing) == len(names) else ()

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """Cut into equal parts."""
        return dict(zip(self.theirs, _agreed(self.ours, state).chunk(len(self.theirs)), strict=True))

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """Put together again."""
        return dict.fromkeys(self.ours, torch.cat([state[name] for name in self.theirs]))


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A layer of theirs that we do without, because it leaves every vector of this width as it is."""

    theirs: Names
    """Weight and bias."""
    width: int

    @property
    def ours(self) -> Names:
        """Nothing."""
        return ()

    def needed(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Every one of the names."""
        return tuple(name for name in names if name not in state)

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """Ones on the diagonal, and no bias."""
        return dict(zip(self.theirs, (torch.eye(self.width), torch.zeros(self.width)), strict=True))

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """Nothing; refuses a layer that changes what goes through it."""
        for name, tensor in self.to_theirs({}).items():
            if not torch.equal(state[name].float().cpu(), tensor):
                raise InputError(f"{name} changes embeddings that are as wide as the network, which cannot be read.")
        return {}


@dataclass(frozen=True, slots=True)
class Left:
    """Names that have no counterpart: a head that the other side has no room for, a buffer that holds 0, 1, 2, …"""

    ours: Names = ()
    theirs: Names = ()

    def needed(self, names: Names, state: Mapping[str, Tensor]) -> Names:
        """Nothing."""
        return ()

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """Stays behind."""
        return {}

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """Stays behind."""
        return {}


@dataclass(frozen=True, slots=True)
class NameTable:
    """All entries of one architecture; `name` is what messages call it."""

    name: str
    entries: tuple[Entry, ...]

    def to_theirs(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to write. A key of ours that has no place there, or is missing here, refuses the export."""
        self._account(state, lambda entry: entry.ours, "the network")
        return _merged(entry.to_theirs(state) for entry in self.entries)

    def to_ours(self, state: Mapping[str, Tensor]) -> Weights:
        """The weights to load. A key of theirs that has no place here, or is missing there, refuses the import."""
        self._account(state, lambda entry: entry.theirs, "the weights")
        return _merged(entry.to_ours(state) for entry in self.entries)

    def _account(self, state: Mapping[str, Tensor], side: Callable[[Entry], Names], who: str) -> None:
        known = {name for entry in self.entries for name in side(entry)}
        extra = sorted(set(state) - known)
        missing = [name for entry in self.entries for name in entry.needed(side(entry), state)]
        wrong = [f"has no place for {some(extra)}"] if extra else []
        wrong += [f"needs {some(missing)}, which is not there"] if missing else []
        if wrong:
            raise InputError(
                f"{self.name} cannot be matched with {who}: it {' and it '.join(wrong)}. Choose the architecture whose "
                "heads are those of the network."
            )


def some(names: Iterable[str], shown: int = 6) -> str:
    """Names for a message: the first few, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - shown} more" if len(every) > shown else ""
    return ", ".join(every[:shown]) + rest


def _agreed(names: Names, state: Mapping[str, Tensor]) -> Tensor:
    """The one tensor behind several names."""
    first, *others = (name for name in names if name in state)
    for other in others:
        if not torch.equal(state[first], state[other]):
            raise InputError(
                f"{other} should be the same tensor as {first}, but holds other numbers. Networks whose output matrix "
                "is not the token embedding cannot be converted."
            )
    return state[first]


def _merged(parts: Iterable[Weights]) -> Weights:
    return {name: tensor for part in parts for name, tensor in part.items()}
