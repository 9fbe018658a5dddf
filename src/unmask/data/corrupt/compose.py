"""Denoising (BART, Lewis et al., 2019): corruptions applied in sequence; the target is the whole original row.

The target includes the special tokens and always ends with the separator, because a decoder must learn to stop. A row
that does not end with one gets one added. No step moves the last special token of a row, so the inputs show which of
the two it was, and the original is restored exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import offsets, positions_in_rows
from unmask.core.records import Bools, DecoderTarget, Ids, Inputs, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.row_plan import inputs_like, row_class_targets
from unmask.data.tokenize.vocab import Vocab


@runtime_checkable
class NoiseStep(Corruption, Protocol):
    """A corruption whose output is again a batch of rows, so that another step can follow."""

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The corrupted rows, with their units."""


@dataclass(frozen=True, slots=True)
class NoiseSequence:
    """Several corruptions in sequence. BART permutes the sentences and then infills."""

    steps: tuple[NoiseStep, ...]
    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)

    def __post_init__(self) -> None:
        if not self.steps:
            raise RecipeError("NoiseSequence needs at least one step, found none; give it TextInfilling().")
        for step in self.steps:
            if not isinstance(step, NoiseStep):
                raise RecipeError(
                    f"NoiseSequence needs steps that keep the text for the next step, found {type(step).__name__},"
                    " which predicts parts of it; use TextInfilling, TokenDeletion, PermuteSentences or"
                    " DocumentRotation, or that part alone."
                )

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layers that any of the steps reads."""
        return frozenset().union(*(step.required_units for step in self.steps))

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The rows after all steps. Each step has its own key."""
        for number, step in enumerate(self.steps):
            example = step.apply(example, vocab, key.fold_in("step", number))
        return example

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Corrupt every row; the target is the original row."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)


def denoising_target(before: RowBatch, after: RowBatch, vocab: Vocab) -> InputsAndTargets:
    """The corrupted rows as inputs, the original rows as decoder targets."""
    inputs = inputs_like(after, after.ids)
    ends = before.rows[1:][_is_unterminated(inputs, vocab)]
    rows = before.rows + np.searchsorted(ends, before.rows, side="right")
    target = DecoderTarget(np.insert(before.ids, ends, vocab.eos), rows, positions_in_rows(rows))
    return InputsAndTargets(inputs, (target, *row_class_targets(before)))


def original_rows(instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
    """The original rows: the target without the separators that were added."""
    target = instance.targets[0]
    assert isinstance(target, DecoderTarget)
    added = _is_unterminated(instance.inputs, vocab)
    ids = np.delete(target.ids, target.rows[1:][added] - 1)
    return ids, offsets(np.diff(target.rows) - added)


def _is_unterminated(inputs: Inputs, vocab: Vocab) -> Bools:
    """Which rows do not end with the end token."""
    unclosed: Bools = inputs.ids[inputs.rows[1:] - 1] != vocab.eos
    return unclosed
