"""Arithmetic on ragged rows that lie flat in one array with offsets, and exact sampling in each; no loop over rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.core.records import Bools, Ints
from unmask.core.rng import UInts

COLUMN_BITS = 12
"""The low bits of a cell of `random_grid` in a batch of short rows: the column."""
_RANDOM_BITS = 19
_Sortable: TypeAlias = npt.NDArray[Any]


def concat_ranges(start: npt.NDArray[Any], length: npt.NDArray[Any]) -> Ints:
    """`start[0], start[0] + 1, ...` for `length[0]` numbers, then the same for the next, in one flat array."""
    before = np.cumsum(length) - length
    flat: Ints = np.arange(int(length.sum())) + np.repeat(start - before, length)
    return flat


def positions_in_rows(rows: Ints) -> Ints:
    """The position of each flat index inside its own row: 0, 1, 2, ... in every row."""
    flat: Ints = np.arange(rows[-1]) - np.repeat(rows[:-1], np.diff(rows))
    return flat


def row_sums(values: npt.NDArray[Any], rows: Ints) -> Ints:
    """The sum of the values of each row; an empty row sums to 0."""
    total = np.append(0, np.cumsum(values))
    sums: Ints = total[rows[1:]] - total[rows[:-1]]
    return sums


def offsets(lengths: npt.NDArray[Any]) -> Ints:
    """Row offsets from row lengths: 0, then the running sum."""
    total: Ints = np.append(0, np.cumsum(lengths)).astype(np.int64)
    return total


def sample_exact(words: UInts, rows: Ints, allowed: Bools, counts: Ints) -> Bools:
    """Marks, in each row, the `counts` allowed positions with the lowest random numbers."""
    grid, real = random_grid(words, rows, ~allowed)
    counts = np.minimum(counts, row_sums(allowed, rows))
    limit = np.take_along_axis(np.sort(grid, axis=1), np.maximum(counts - 1, 0)[:, None], axis=1)
    return ((grid <= limit) & (counts > 0)[:, None])[real]


def random_grid(words: UInts, rows: Ints, later: Bools) -> tuple[_Sortable, Bools]:
    """A sortable number for every cell of the padded grid, and which cells are real.

    From the top: whether the cell comes later than the others, 19 random bits, the column. A row that is longer than 12
    bits can count takes 64-bit cells; the order stays the same, so a row never depends on its neighbours.
    """
    lengths = np.diff(rows)
    width = int(lengths.max(initial=1))
    real = np.arange(width) < lengths[:, None]
    rank = (words >> np.uint64(64 - _RANDOM_BITS)) | (later.astype(np.uint64) << np.uint64(_RANDOM_BITS))
    narrow = width <= 1 << COLUMN_BITS
    kind = np.dtype(np.uint32 if narrow else np.uint64)
    grid: _Sortable = np.full(real.shape, (1 << 32 if narrow else 1 << 64) - 1, dtype=kind)
    grid[real] = rank << np.uint64(COLUMN_BITS if narrow else 32)
    grid |= np.arange(width, dtype=kind)
    return grid, real
