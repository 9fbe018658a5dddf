"""Operations on ragged rows for corruptions that move or drop tokens: sampling, shuffling, gathering; no loops.

Two layouts are used. *Flat*: rows one after another, with offsets. *Padded*: a matrix with a line for each row, as wide
as the longest; `valid_mask(sizes)` marks the real cells, and `matrix[valid_mask(sizes)]` is the flat layout again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unmask.core.ragged import offsets
from unmask.core.records import Bools, Ints, RowBatch, TokenUnits, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key, UInts

# A sorting key is 43 random bits above a 20-bit column, so that equal words still have one order; the top bit marks a
# cell that may not be taken and sends it to the end.
_COLUMN = np.uint64((1 << 20) - 1)
_BARRED = np.uint64(1 << 63)


def valid_mask(sizes: Ints) -> Bools:
    """Which cells of the padded layout are real: the first `sizes[i]` of row i. There is always at least one column."""
    real: Bools = np.arange(max(1, int(sizes.max(initial=0)))) < sizes[:, None]
    return real


def sample_cells(words: UInts, allowed: Bools, counts: Ints) -> Bools:
    """Choose `counts[i]` of the `allowed` cells of row i, every such choice equally likely."""
    keys = _sortable(words, allowed)
    last = np.take_along_axis(np.sort(keys, axis=1), np.maximum(counts, 1)[:, None] - 1, axis=1)
    chosen: Bools = (keys <= last) & (counts > 0)[:, None]
    return chosen


def shuffle(words: UInts, allowed: Bools) -> Ints:
    """The columns of each row in random order: the `allowed` ones first, the rest after them."""
    return (np.sort(_sortable(words, allowed), axis=1) & _COLUMN).astype(np.int64)


def random_partition(totals: Ints, num_parts: Ints, key: Key, lane: DrawPurpose) -> Ints:
    """Cut each total into its number of parts, none empty, every cut equally likely; the lengths lie flat.

    A total of 0 can only be one part, of length 0.
    """
    size = np.maximum(totals, 1)
    real = valid_mask(size)
    inner = real.copy()
    inner[:, 0] = False
    starts = sample_cells(key.bits(lane, real.shape[1]), inner, num_parts - 1)
    starts[:, 0] = True
    lengths = np.diff(np.flatnonzero(starts[real]), append=int(size.sum()))
    lengths[offsets(num_parts)[:-1]] -= totals == 0
    return lengths


def free_tokens(example: RowBatch) -> tuple[Ints, Ints]:
    """The positions that a corruption may touch, and the row offsets inside that list."""
    free = np.flatnonzero(~example.protected)
    return free, np.searchsorted(free, example.rows)


def segment_starts(example: RowBatch) -> Bools:
    """Where a segment begins: a run of free tokens of one row, document and segment id, or one special token.

    Text never moves from one segment to another, and no mask replaces parts of two.
    """
    starts = example.protected.copy()
    starts[1:] |= example.protected[:-1]
    starts[1:] |= example.document[1:] != example.document[:-1]
    starts[1:] |= example.segment[1:] != example.segment[:-1]
    starts[example.rows[:-1][example.lengths > 0]] = True
    return starts


def unit_starts(example: RowBatch, layer: UnitKind) -> Bools:
    """Where a unit of a layer begins. Units cover every token: outside all phrases (or entities), words count."""
    bits = example.units.bits
    if layer is UnitKind.TOKEN:
        return np.ones(len(bits), dtype=np.bool_)
    starts = segment_starts(example)
    if layer is UnitKind.SENTENCE:
        starts |= (bits & UnitFlag.SENTENCE) != 0
    elif layer is UnitKind.WORD:
        starts |= (bits & UnitFlag.WORD) != 0
    else:
        phrase = layer is UnitKind.PHRASE
        inside = (bits & (UnitFlag.IN_PHRASE if phrase else UnitFlag.IN_ENTITY)) != 0
        starts |= (bits & (UnitFlag.PHRASE if phrase else UnitFlag.ENTITY)) != 0
        starts |= ~inside & ((bits & UnitFlag.WORD) != 0)
        starts[1:] |= ~inside[1:] & inside[:-1]
    return starts


def gather_tokens(example: RowBatch, source: Ints, rows: Ints) -> RowBatch:
    """The rows with token `source[j]` at position j. Facts about whole rows are kept."""
    return replace(
        example,
        ids=example.ids[source],
        segment=example.segment[source],
        document=example.document[source],
        protected=example.protected[source],
        units=TokenUnits(example.units.bits[source]),
        rows=rows,
    )


def drop_tokens(example: RowBatch, kept: Bools) -> RowBatch:
    """The rows without the tokens that are not kept; every row must keep one.

    A word or sentence that loses its first token begins at the next one that is kept, and every row begins with both.
    """
    source = np.flatnonzero(kept)
    result = gather_tokens(example, source, np.searchsorted(source, example.rows))
    borders = example.units.bits[: source[-1] + 1] & np.uint8(UnitFlag.BORDER)
    bits = result.units.bits
    bits |= np.bitwise_or.reduceat(borders, np.append(0, source[:-1] + 1))
    bits[result.rows[:-1]] |= np.uint8(UnitFlag.BORDER)
    return result


def mark_borders(example: RowBatch, at: Ints) -> RowBatch:
    """The rows with a word and a sentence starting at each of these positions."""
    bits = example.units.bits.copy()
    bits[at] |= np.uint8(UnitFlag.BORDER)
    return replace(example, units=TokenUnits(bits))


def _sortable(words: UInts, among: Bools) -> UInts:
    keys = ((words >> np.uint64(1)) & ~_COLUMN) | np.arange(words.shape[1], dtype=np.uint64)
    return np.where(among, keys, keys | _BARRED)
