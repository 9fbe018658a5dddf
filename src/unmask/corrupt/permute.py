"""Sentence permutation (BART, Lewis et al., 2019): the sentences of a row in a random order.

What arrives: an `Example` whose text was split into sentences.
What leaves: rows of the same length with their sentences moved, and the original rows as a `Rewrite`.
What never happens here: a special token that moves, or a sentence that crosses one. Sentences change places only within
their stretch, so the two segments of a pair and the documents of a packed row stay apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.corrupt.noise import ask_back, asked
from unmask.corrupt.ragged import mark_borders, stretch_starts, take, unit_starts
from unmask.keys import Key, Lane
from unmask.ragged import ranges
from unmask.records import Example, Ids, Instance, Ints, Layer, Rewrite, Target
from unmask.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class PermuteSentences:
    """Put the sentences of each stretch into a random order; every order is equally likely, the old one too."""

    makes: ClassVar[tuple[type[Target], ...]] = (Rewrite,)

    @property
    def needs(self) -> frozenset[Layer]:
        """Sentences."""
        return frozenset({Layer.SENTENCE})

    def apply(self, example: Example, vocab: Vocab, key: Key) -> Example:
        """The rows with their sentences moved."""
        starts = np.flatnonzero(unit_starts(example, Layer.SENTENCE))
        lengths = np.diff(starts, append=len(example.ids))
        stretch = np.cumsum(stretch_starts(example), dtype=np.int32)[starts]
        words = key.spread(Lane.ORDER, np.searchsorted(starts, example.rows))
        order = np.lexsort((words, stretch))
        # A piece of a sentence cut off by the row's edge would melt into its new neighbour, so it is marked as well.
        return take(mark_borders(example, starts), ranges(starts[order], lengths[order]), example.rows)

    def __call__(self, example: Example, vocab: Vocab, key: Key) -> Instance:
        """Permute every row and ask for it."""
        return ask_back(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: Instance, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return asked(instance, vocab)
