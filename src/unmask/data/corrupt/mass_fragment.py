"""One fragment (MASS, Song et al., 2019): the encoder reads the text around it, the decoder writes the fragment.

The target has no end token, because the decoder works at the positions of the fragment. The free tokens of a row count
as one sequence, so a fragment may reach into the next segment; the special token between them stays visible, is not
predicted, and is a gap in the positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import ClassVar

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges, offsets
from unmask.core.records import DecoderTarget, Ids, InputsAndTargets, Ints, RowBatch, Target, UnitKind
from unmask.core.rng import DrawPurpose, Key, categorical, randint
from unmask.data.corrupt.row_ops import free_tokens
from unmask.data.input_formats.row_plan import inputs_like, row_class_targets
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class MassFragment:
    """Hide one fragment of `share` of the free tokens of each row, rounded, at least one.

    A share of 1 is a plain language model; a fragment of one token is a cloze.
    """

    fraction: float = 0.5
    place_probabilities: tuple[float, float, float] = (0.2, 0.2, 0.6)
    """How often the fragment begins the row, ends it, or lies anywhere."""
    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)
    required_units: ClassVar[frozenset[UnitKind]] = frozenset()

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise RecipeError(f"Fragment needs a share above 0 and up to 1, found {self.fraction}; MASS uses 0.5.")
        for what, shares in (
            ("place", self.place_probabilities),
            ("mask, random and keep", self._replace_probabilities),
        ):
            if min(shares) < 0 or not isclose(sum(shares), 1):
                raise RecipeError(f"Fragment needs shares of {what} that sum to 1, found {shares}; change one of them.")

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Hide a fragment of every row; the target is the fragment."""
        free, rows = free_tokens(example)
        size = np.diff(rows)
        length = np.minimum(np.maximum(np.rint(size * self.fraction).astype(np.int64), 1), size)
        at = free[concat_ranges(rows[:-1] + self._starts(size - length, key), length)]
        fragments = offsets(length)
        ids = example.ids.copy()
        ids[at] = self._replace_ids(ids[at], fragments, vocab, key)
        position = at - np.repeat(example.rows[:-1], length)
        target = DecoderTarget(example.ids[at], fragments, position)
        return InputsAndTargets(inputs_like(example, ids), (target, *row_class_targets(example)))

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows: the fragment put back to its positions."""
        inputs, target = instance.inputs, instance.targets[0]
        assert isinstance(target, DecoderTarget)
        ids = inputs.ids.copy()
        ids[target.position + np.repeat(inputs.rows[:-1], np.diff(target.rows))] = target.ids
        return ids, inputs.rows

    @property
    def _replace_probabilities(self) -> tuple[float, float, float]:
        return self.mask, self.random, self.keep

    def _starts(self, room: Ints, key: Key) -> Ints:
        """The first free token of each fragment; `room` is the last possible one."""
        words = key.bits(DrawPurpose.PLACE, 2)
        anywhere = randint(words[:, 1], room + 1)
        return np.choose(categorical(words[:, 0], self.place_probabilities), [np.zeros_like(room), room, anywhere])

    def _replace_ids(self, ids: Ids, rows: Ints, vocab: Vocab, key: Key) -> Ids:
        """The ids that replace the fragment in the encoder input, drawn for each token."""
        drawn = vocab.random_ordinary(key.bits_per_token(DrawPurpose.TOKEN, rows))
        return np.choose(
            categorical(key.bits_per_token(DrawPurpose.SHOW, rows), self._replace_probabilities),
            [np.int32(vocab.mask), drawn, ids],
        )
