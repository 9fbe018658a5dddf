"""Rows of one sentence each, in order."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import CLS_SEP, RowPlan, SpecialTokenTemplate
from unmask.data.input_formats.sentence_index import sentence_index


@dataclass(frozen=True, slots=True)
class SingleSentences:
    """One sentence a row; a sentence that does not fit is cut between words and goes on in the next row."""

    template: SpecialTokenTemplate = CLS_SEP
    isolate_documents: ClassVar[bool] = False
    num_streams: ClassVar[int] = 0
    num_segments: ClassVar[int] = 1

    @property
    def row_facts(self) -> frozenset[str]:
        """`follows`: the row before holds the sentence before. `leads`: the row after holds the sentence after."""
        return frozenset({"follows", "leads"})

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Every sentence, in order; nothing is drawn."""
        starts, sizes, follows = [], [], []
        for found in sentence_index(corpus, self.template.text_budget(length, 1)):
            starts.append(found.offsets[:-1])
            sizes.append(np.diff(found.offsets))
            inner = np.ones(len(found.offsets) - 1, dtype=np.int8)
            inner[found.document_offsets[:-1]] = 0
            follows.append(inner)
        start, after = np.concatenate(starts), np.concatenate(follows)
        return RowPlan(
            start=start,
            length=np.concatenate(sizes).astype(np.int32),
            segment=np.zeros(len(start), dtype=np.uint8),
            document=np.zeros(len(start), dtype=np.uint16),
            rows=np.arange(len(start) + 1),
            facts=MappingProxyType({"follows": after, "leads": np.append(after[1:], 0).astype(np.int8)}),
        )
