"""No corruption: the next token is predicted everywhere (causal language models)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.records import Ids, InputsAndTargets, Ints, NextToken, RowBatch, Target, UnitKind
from unmask.core.rng import Key
from unmask.data.input_formats.row_plan import inputs_like, row_class_targets
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class NoCorruption:
    """The text as it is: every position predicts the next token, except the last one of a row or document."""

    target_types: ClassVar[tuple[type[Target], ...]] = (NextToken,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """The rows as they are."""
        weights = np.ones(len(example.ids), dtype=np.float32)
        weights[example.rows[1:] - 1] = 0
        weights[:-1][np.diff(example.document) != 0] = 0
        return InputsAndTargets(inputs_like(example, example.ids), (NextToken(weights), *row_class_targets(example)))

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """Nothing was lost."""
        return instance.inputs.ids, instance.inputs.rows
