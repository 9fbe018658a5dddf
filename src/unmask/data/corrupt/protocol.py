"""The protocol of corruptions: rows in, inputs and targets out. All randomness comes from the key."""

from __future__ import annotations

from typing import Protocol

from unmask.core.ragged import positions_in_rows
from unmask.core.records import Ids, Inputs, InputsAndTargets, Ints, RowBatch, RowClass, Target, UnitKind
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


def inputs_like(example: RowBatch, ids: Ids) -> Inputs:
    """Inputs of the same shape as the example, with other ids."""
    return Inputs(
        ids,
        example.segment,
        example.document,
        positions_in_rows(example.rows),
        example.rows,
        continues_previous=example.continues_previous,
    )


def row_class_targets(example: RowBatch) -> tuple[RowClass, ...]:
    """The facts about each row as targets; a corruption does not change them."""
    return tuple(RowClass(name, value) for name, value in sorted(example.facts.items()))
