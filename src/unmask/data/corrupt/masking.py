"""Cloze: choose, show something else, ask for the truth (BERT and most of its family).

What arrives: an example and a key. What leaves: the same rows with other ids at the chosen positions, and a `Cloze`.
What never happens here: a change of length, or a question about a position that was not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.core.ragged import concat_ranges
from unmask.core.records import Cloze, Ids, InputsAndTargets, Ints, RowBatch, Spans, Target, UnitFlag, UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.protocol import inputs_like, row_class_targets
from unmask.data.corrupt.replacement import Replace, SelectedTokens
from unmask.data.corrupt.selection import RandomTokens, Selector
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class MaskTokens:
    """Hide the selected tokens and ask for them.

    `MaskOut()` is BERT's rule: 15 % of the tokens; of these 80 % become [MASK], 10 % a random token, 10 % stay.
    """

    select: Selector = RandomTokens()
    replace: Replace = Replace(mask=0.8, random=0.1, keep=0.1)
    target_types: ClassVar[tuple[type[Target], ...]] = (Cloze,)

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """What the selection needs."""
        return self.select.required_units

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Select, replace, and keep the answers."""
        spans = self.select(example, key)
        positions = concat_ranges(spans.start, spans.lengths)
        chosen = _selected_tokens(example, spans, positions)
        ids = example.ids.copy()
        ids[positions] = self.replace(chosen, vocab, key)
        return InputsAndTargets(
            inputs_like(example, ids), (Cloze(positions, chosen.ids, spans), *row_class_targets(example))
        )

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """Write the answers back."""
        cloze = instance.targets[0]
        assert isinstance(cloze, Cloze)
        ids = instance.inputs.ids.copy()
        ids[cloze.positions] = cloze.answers
        return ids, instance.inputs.rows


def _selected_tokens(example: RowBatch, spans: Spans, positions: Ints) -> SelectedTokens:
    row = np.repeat(np.arange(len(example)), np.diff(np.searchsorted(positions, example.rows)))
    lengths = spans.lengths
    span = np.repeat(np.cumsum(lengths) - lengths, lengths)
    begins = (example.units.bits[positions] & UnitFlag.WORD) != 0
    begins[span] = True
    word = np.maximum.accumulate(np.where(begins, np.arange(len(positions)), 0))
    return SelectedTokens(example.ids[positions], row, positions - example.rows[row], word, span)
