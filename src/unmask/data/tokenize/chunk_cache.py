"""A table of chunks of text and their tokens, in flat arrays.

What arrives: chunks, and the encodings that the library gave for them. What leaves: tokens of many chunks at once.
What never happens here: a loop over the tokens that leave. Row r of the table holds `bounds[r]:bounds[r + 1]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from unmask.core.ragged import concat_ranges
from unmask.core.records import Ids, Ints
from unmask.data.tokenize.safe_splits import code_points, is_whitespace


class EncodedText(NamedTuple):
    """Token ids, and the characters that each token covers. A token of whitespace alone covers none."""

    ids: Ids
    starts: Ints
    ends: Ints


class ChunkCache:
    """Tokens of known chunks. Rows are only ever added at the end, or taken off it again."""

    def __init__(self) -> None:
        self._bounds = np.zeros(1, dtype=np.int64)
        self._tokens = np.zeros((3, 0), dtype=np.int32)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, chunks: Sequence[str], encodings: Sequence[Encoding]) -> None:
        """Add one row for each chunk."""
        counts = np.fromiter((len(encoding) for encoding in encodings), np.int64, len(encodings))
        ids = _flat((encoding.ids for encoding in encodings), int(counts.sum()))
        pairs = chain.from_iterable(encoding.offsets for encoding in encodings)
        spans = _flat(pairs, 2 * len(ids)).reshape(-1, 2)
        starts, ends = _strip_whitespace(chunks, counts, spans[:, 0], spans[:, 1])
        used = int(self._bounds[self._rows])
        self._reserve(self._rows + len(chunks), used + len(ids))
        self._bounds[self._rows + 1 : self._rows + len(chunks) + 1] = used + np.cumsum(counts)
        self._tokens[:, used : used + len(ids)] = ids, starts, ends
        self._rows += len(chunks)

    def truncate(self, rows: int) -> None:
        """Forget all rows but the first ones."""
        self._rows = rows

    def gather(self, rows: Ints, starts: Ints) -> EncodedText:
        """The tokens of these rows one after another, each row moved to where its chunk stands in the text."""
        first = self._bounds[rows]
        counts = self._bounds[rows + 1] - first
        flat = concat_ranges(first, counts)
        shift = np.repeat(starts, counts)
        return EncodedText(self._tokens[0, flat], self._tokens[1, flat] + shift, self._tokens[2, flat] + shift)

    def _reserve(self, rows: int, tokens: int) -> None:
        """Make room, doubling so that adding stays cheap."""
        if rows + 1 > len(self._bounds):
            self._bounds = np.concatenate((self._bounds, np.zeros(2 * rows, dtype=np.int64)))
        if tokens > self._tokens.shape[1]:
            self._tokens = np.concatenate((self._tokens, np.zeros((3, 2 * tokens), dtype=np.int32)), axis=1)


def _flat(lists: Iterable[Iterable[int]], count: int) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(lists), np.int64, count)


def _strip_whitespace(chunks: Sequence[str], counts: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Take whitespace off both ends of every token; what is nothing else becomes empty where it began."""
    points = code_points("".join(chunks))
    lengths = np.fromiter(map(len, chunks), np.int64, len(chunks))
    base = np.repeat(np.cumsum(lengths) - lengths, counts)
    shown = ~is_whitespace(points)
    where = np.append(np.flatnonzero(shown), 0)
    before = np.concatenate(([0], np.cumsum(shown)))
    low, high = before[starts + base], before[ends + base]
    seen = high > low
    return np.where(seen, where[low] - base, starts), np.where(seen, where[high - 1] + 1 - base, starts)
