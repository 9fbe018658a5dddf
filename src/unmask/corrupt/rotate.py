"""Document rotation (BART, Lewis et al., 2019): the text begins at a random token, and the model must find its start.

What arrives: an `Example`. What leaves: rows of the same length, rotated, and the original rows as a `Rewrite`.
What never happens here: a special token that moves. A row with several stretches (the segments of a pair, the documents
of a packed row) has each of them rotated in its own place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.corrupt.noise import ask_back, asked
from unmask.corrupt.ragged import mark_borders, stretch_starts, take
from unmask.keys import Key, Lane, below
from unmask.ragged import ranges
from unmask.records import Example, Ids, Instance, Ints, Layer, Rewrite, Target
from unmask.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class Rotate:
    """Rotate each stretch so that a token drawn uniformly from it comes first."""

    makes: ClassVar[tuple[type[Target], ...]] = (Rewrite,)
    needs: ClassVar[frozenset[Layer]] = frozenset()

    def apply(self, example: Example, vocab: Vocab, key: Key) -> Example:
        """The rows rotated: in each stretch, what precedes the drawn token changes places with what follows."""
        starts = np.flatnonzero(stretch_starts(example))
        lengths = np.diff(starts, append=len(example.ids))
        before = below(key.spread(Lane.PLACE, np.searchsorted(starts, example.rows)), lengths)
        first = starts + before
        source = ranges(np.stack([first, starts], 1).ravel(), np.stack([lengths - before, before], 1).ravel())
        return take(mark_borders(mark_borders(example, starts), first), source, example.rows)

    def __call__(self, example: Example, vocab: Vocab, key: Key) -> Instance:
        """Rotate every row and ask for it."""
        return ask_back(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: Instance, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return asked(instance, vocab)
