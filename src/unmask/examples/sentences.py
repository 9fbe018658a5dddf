"""Single sentences that know their neighbours (Skip-Thought, Quick-Thought, sentence-level methods).

What arrives: a corpus and a row length. What leaves: a plan with one sentence a row, in the order of the corpus.
What never happens here: a neighbour from another document.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from unmask.examples.plan import Frame, Plan
from unmask.examples.stretches import sentences
from unmask.keys import Key
from unmask.shards.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Single:
    """One sentence a row; a sentence that does not fit is cut between words and goes on in the next row."""

    apart: ClassVar[bool] = False
    segments: ClassVar[int] = 1

    @property
    def gives(self) -> frozenset[str]:
        """`follows`: the row before holds the sentence before. `leads`: the row after holds the sentence after."""
        return frozenset({"follows", "leads"})

    @property
    def frame(self) -> Frame:
        """`[CLS] sentence [SEP]`."""
        return Frame()

    def plan(self, corpus: Corpus, length: int, key: Key) -> Plan:
        """Every sentence, in order; nothing is drawn."""
        starts, sizes, follows = [], [], []
        for found in sentences(corpus, self.frame.room(length, 1)):
            starts.append(found.border[:-1])
            sizes.append(np.diff(found.border))
            inner = np.ones(len(found.border) - 1, dtype=np.int8)
            inner[found.document[:-1]] = 0
            follows.append(inner)
        start, after = np.concatenate(starts), np.concatenate(follows)
        return Plan(
            start=start,
            length=np.concatenate(sizes).astype(np.int32),
            segment=np.zeros(len(start), dtype=np.uint8),
            document=np.zeros(len(start), dtype=np.uint16),
            rows=np.arange(len(start) + 1),
            facts=MappingProxyType({"follows": after, "leads": np.append(after[1:], 0).astype(np.int8)}),
        )
