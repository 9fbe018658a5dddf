"""Nothing is hidden: the next token is asked for everywhere (GPT, and every left-to-right model).

What arrives: an example. What leaves: the same rows, and a `NextToken` target. What never happens here: a draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask.corrupt.part import facts_of, shown
from unmask.keys import Key
from unmask.records import Example, Ids, Instance, Ints, Layer, NextToken, Target
from unmask.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class Nothing:
    """Show the text as it is; every position says what follows, but for the last of a row and of a document in it."""

    makes: ClassVar[tuple[type[Target], ...]] = (NextToken,)
    needs: ClassVar[frozenset[Layer]] = frozenset()

    def __call__(self, example: Example, vocab: Vocab, key: Key) -> Instance:
        """The rows as they are."""
        weights = np.ones(len(example.ids), dtype=np.float32)
        weights[example.rows[1:] - 1] = 0
        weights[:-1][np.diff(example.document) != 0] = 0
        return Instance(shown(example, example.ids), (NextToken(weights), *facts_of(example)))

    def restore(self, instance: Instance, vocab: Vocab) -> tuple[Ids, Ints]:
        """Nothing was lost."""
        return instance.inputs.ids, instance.inputs.rows
