"""Arithmetic on ragged rows that lie flat in one array, with offsets; no loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.core.records import Ints


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
