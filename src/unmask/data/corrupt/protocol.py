"""The protocol of corruptions: rows in, inputs and targets out. All randomness comes from the key."""

from __future__ import annotations

from typing import Protocol

from unmask.core.records import Ids, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import Key
from unmask.data.tokenize.vocab import Vocab


class Corruption(Protocol):
    """Hides tokens and makes targets of them. A frozen dataclass that is its own configuration."""

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layers that the corpus must have been segmented into."""

    @property
    def target_types(self) -> tuple[type[Target], ...]:
        """The kinds of target that come out."""

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Corrupt every row; row i depends on `key.state[i]` and on nothing else that is random."""

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original ids and row offsets, from the instance alone: nothing is lost that the targets do not hold."""
