"""Text infilling (BART, Lewis et al., 2019): each span of whole units, possibly empty, is replaced by one mask.

    text     the cat sat on the mat
    inputs   the [MASK] on the [MASK] mat         "cat sat" is replaced; the second mask replaces an empty span

Placement: a row is a line of slots, one for every word that is kept and one for every span, empty ones included. The
order of the slots is random. So spans never overlap, all placements are equally likely, and an inserted mask is a span
of length 0. A span that reaches a special token is split there, and each part gets its own mask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges
from unmask.core.records import (
    Bools,
    DecoderTarget,
    Ids,
    InputsAndTargets,
    Ints,
    RowBatch,
    Target,
    TokenUnits,
    UnitFlag,
    UnitKind,
)
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.data.corrupt.compose import denoising_target, original_rows
from unmask.data.corrupt.row_ops import (
    drop_tokens,
    free_tokens,
    gather_tokens,
    segment_starts,
    shuffle,
    unit_starts,
    valid_mask,
)
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True)
class TextInfilling:
    """Hide `rate` of the units of each row, rounded up, in spans whose lengths follow Poisson(`mean`).

    Lengths are drawn until they cover the budget; the last one is trimmed to it.
    """

    rate: float = 0.3
    mean_span_length: float = 3.0
    layer: UnitKind = UnitKind.WORD
    target_types: ClassVar[tuple[type[Target], ...]] = (DecoderTarget,)

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise RecipeError(f"Infill needs a rate above 0 and up to 1, found {self.rate}; BART uses 0.3.")
        if not 0.1 <= self.mean_span_length <= 100:
            raise RecipeError(
                f"Infill needs a mean span length from 0.1 to 100, found {self.mean_span_length}; BART uses 3."
            )

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layer whose units make up the spans."""
        return frozenset() if self.layer is UnitKind.TOKEN else frozenset({self.layer})

    def apply(self, example: RowBatch, vocab: Vocab, key: Key) -> RowBatch:
        """The rows with their spans turned into masks."""
        free, rows = free_tokens(example)
        first = np.flatnonzero(unit_starts(example, self.layer)[free])
        units = np.searchsorted(first, rows)
        row, at, taken = self._spans(units, key)
        gone = np.zeros(len(example.ids), dtype=np.bool_)
        gone[free[_span_tokens(first, len(free), at, taken)]] = True
        head = gone & segment_starts(example)
        head[free[first[at[taken > 0]]]] = True
        hidden = drop_tokens(_replace_by_mask(example, head, vocab), ~gone | head)

        # An empty span goes before its unit, or after the last token of its row.
        row, at = row[taken == 0], at[taken == 0]
        behind = at == units[row + 1]
        anchor = np.append(free[first], 0)[at]
        anchor[behind] = free[rows[row[behind] + 1] - 1] + 1
        place = np.searchsorted(np.flatnonzero(~gone | head), anchor)
        return _insert_masks(hidden, place, behind, row, vocab)

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Infill every row; the target is the original row."""
        return denoising_target(example, self.apply(example, vocab, key), vocab)

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """The original rows, which are the target."""
        return original_rows(instance, vocab)

    def _spans(self, units: Ints, key: Key) -> tuple[Ints, Ints, Ints]:
        """Every span in reading order: its row, the unit it stands at, and how many units it takes."""
        size = np.diff(units)
        budget = np.ceil(size * self.rate - 1e-9).astype(np.int64)
        lengths, used = self._lengths(budget, key)
        real = valid_mask(size - budget + used.sum(axis=1))
        slot = shuffle(key.bits(DrawPurpose.PLACE, real.shape[1]), real)
        takes, span = np.ones(real.shape, dtype=np.int64), np.zeros(real.shape, dtype=np.bool_)
        row, number = np.nonzero(used)
        takes[row, slot[row, number]] = lengths[row, number]
        span[row, slot[row, number]] = True
        takes, chosen = takes[real], span[real]
        return np.nonzero(span)[0], (np.cumsum(takes) - takes)[chosen], takes[chosen]

    def _lengths(self, budget: Ints, key: Key) -> tuple[Ints, Bools]:
        """Span lengths in the order of drawing, trimmed to the budget of their row, and which of them are used."""
        law = _poisson_cdf(self.mean_span_length)
        count = 16 + int(1.3 * budget.max(initial=0) / self.mean_span_length)
        while True:
            lengths = np.searchsorted(law, uniform(key.bits(DrawPurpose.LENGTH, count)), side="right")
            total = np.cumsum(lengths, axis=1)
            if (total[:, -1] >= budget).all():
                break
            count *= 2  # the words of a lane do not depend on how many are drawn
        before = total - lengths
        return np.minimum(lengths, budget[:, None] - before), before < budget[:, None]


def _poisson_cdf(mean: float) -> npt.NDArray[np.float64]:
    """The probability of a length of at most 0, 1, 2, ..., to the resolution of a uniform number."""
    steps = mean / np.arange(1, int(mean + 12 * sqrt(mean)) + 30)
    return np.cumsum(exp(-mean) * np.cumprod(np.append(1.0, steps)))


def _span_tokens(first: Ints, size: int, at: Ints, taken: Ints) -> Ints:
    """The free tokens that spans of units take, where `first` is the first free token of every unit."""
    edges = np.append(first, size)
    return concat_ranges(edges[at], edges[at + taken] - edges[at])


def _replace_by_mask(example: RowBatch, head: Bools, vocab: Vocab) -> RowBatch:
    """The rows with the first token of each span replaced by the mask, which is a word."""
    bits = np.where(
        head, (example.units.bits & np.uint8(UnitFlag.SENTENCE)) | np.uint8(UnitFlag.WORD), example.units.bits
    )
    return replace(example, ids=np.where(head, np.int32(vocab.mask), example.ids), units=TokenUnits(bits))


def _insert_masks(example: RowBatch, place: Ints, behind: Bools, row: Ints, vocab: Vocab) -> RowBatch:
    """The rows with a mask inserted before each place, in the segment and document of its neighbor in the row."""
    source = np.insert(np.arange(len(example.ids)), place, place - behind)
    result = gather_tokens(example, source, example.rows + np.searchsorted(row, np.arange(len(example) + 1)))
    masks = place + np.arange(len(place))
    result.ids[masks] = vocab.mask
    result.units.bits[masks] = UnitFlag.WORD
    return result
