"""Cloze: choose, show something else, ask for the truth (BERT and most of its family).

What arrives: an example and a key. What leaves: the same rows with other ids at the chosen positions, and a `Cloze`.
What never happens here: a change of length, or a question about a position that was not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.corrupt.part import facts_of, shown
from unmask.corrupt.replace import Chosen, Replace
from unmask.corrupt.select import Select, Tokens
from unmask.keys import Key
from unmask.ragged import ranges
from unmask.records import Cloze, Example, Flag, Ids, Instance, Ints, Layer, Spans, Target
from unmask.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class MaskOut:
    """Hide the selected tokens and ask for them.

    `MaskOut()` is BERT's rule: 15 % of the tokens; of these 80 % become [MASK], 10 % a random token, 10 % stay.
    """

    select: Select = Tokens()
    replace: Replace = Replace(mask=0.8, random=0.1, keep=0.1)
    makes: ClassVar[tuple[type[Target], ...]] = (Cloze,)

    @property
    def needs(self) -> frozenset[Layer]:
        """What the selection needs."""
        return self.select.needs

    def __call__(self, example: Example, vocab: Vocab, key: Key) -> Instance:
        """Select, replace, and keep the answers."""
        spans = self.select(example, key)
        positions = ranges(spans.start, spans.lengths)
        chosen = _chosen(example, spans, positions)
        ids = example.ids.copy()
        ids[positions] = self.replace(chosen, vocab, key)
        return Instance(shown(example, ids), (Cloze(positions, chosen.ids, spans), *facts_of(example)))

    def restore(self, instance: Instance, vocab: Vocab) -> tuple[Ids, Ints]:
        """Write the answers back."""
        cloze = instance.targets[0]
        assert isinstance(cloze, Cloze)
        ids = instance.inputs.ids.copy()
        ids[cloze.positions] = cloze.answers
        return ids, instance.inputs.rows


def _chosen(example: Example, spans: Spans, positions: Ints) -> Chosen:
    row = np.repeat(np.arange(len(example)), np.diff(np.searchsorted(positions, example.rows)))
    lengths = spans.lengths
    span = np.repeat(np.cumsum(lengths) - lengths, lengths)
    begins = (example.units.bits[positions] & Flag.WORD) != 0
    begins[span] = True
    word = np.maximum.accumulate(np.where(begins, np.arange(len(positions)), 0))
    return Chosen(example.ids[positions], row, positions - example.rows[row], word, span)
