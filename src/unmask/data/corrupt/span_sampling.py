"""Selection of units inside a budget for whole batches: units or runs, without a Python loop over rows or tokens.

Rows form a padded grid (rows x units), because sorting short rows of 32-bit numbers is by far the fastest primitive:
the random bits are on top and the unit's index in the low bits, so a sort of values gives the random order and the
units at once. The draws of a row do not depend on other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.core.ragged import COLUMN_BITS, positions_in_rows, random_grid, row_sums
from unmask.core.records import Bools, Ints, RowBatch, Spans, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key, categorical, randint

_TRIES = 4
_TOO_LONG = 1 << 30


@dataclass(frozen=True, slots=True)
class UnitCandidates:
    """The units of each row that may be chosen, as flat arrays with row offsets."""

    start: Ints
    end: Ints
    rows: Ints
    is_preferred: Bools
    """Units of the wanted layer come before the words that only fill up."""
    breaks: Bools
    """Where no run may come in from the left: at the start of a row, after a special token, at a sentence's start."""

    @staticmethod
    def of(example: RowBatch, layer: UnitKind, inside: UnitKind) -> UnitCandidates:
        """Every unit of a layer, and every word outside it, except special tokens."""
        bits = example.units.bits
        own, member = _FLAGS.get(layer, (UnitFlag.WORD, 0))
        begins = (bits & own) != 0
        if member:
            begins |= (bits & (UnitFlag.WORD | member)) == UnitFlag.WORD
        start = np.flatnonzero(begins)
        end = np.append(start[1:], len(bits))
        special = example.protected[start]
        breaks = np.append(True, special[:-1])
        breaks[np.searchsorted(start, example.rows[:-1])] = True
        if inside is UnitKind.SENTENCE:
            breaks |= (bits[start] & UnitFlag.SENTENCE) != 0
        free = np.flatnonzero(~special)
        start = start[free]
        wanted = (bits[start] & own) != 0
        return UnitCandidates(start, end[free], np.searchsorted(start, example.rows), wanted, breaks[free])

    @property
    def lengths(self) -> Ints:
        """The tokens in each unit."""
        return self.end - self.start

    @property
    def max_run(self) -> Ints:
        """How many units follow without a break, this one counted: a run may be that long."""
        number = np.arange(len(self.start))
        stop = np.where(self.breaks, number, len(number))
        following = np.append(stop[1:], len(number))
        room: Ints = np.minimum.accumulate(following[::-1])[::-1] - number
        return room


_FLAGS = {
    UnitKind.PHRASE: (UnitFlag.PHRASE, UnitFlag.IN_PHRASE),
    UnitKind.ENTITY: (UnitFlag.ENTITY, UnitFlag.IN_ENTITY),
}


def sample_units(candidates: UnitCandidates, budget: Ints, key: Key) -> Spans:
    """Whole units in random order; one that would exceed what is left of the budget is skipped.

    If not even the shortest unit of a row fits, that one is taken: a row never goes without a question.
    """
    order, count = _random_order(candidates, key)
    # A unit has at least one token, so most budgets are spent on the first few of a row; the others wait.
    near = min(order.shape[1], int(budget.max(initial=1)))
    chosen = np.zeros(len(candidates.start), dtype=np.bool_)
    left = _fill_budget(candidates, order[:, :near], np.arange(len(count)), budget, chosen)
    far = np.flatnonzero((left > 0) & (count > near))
    if len(far):
        left[far] = _fill_budget(candidates, order[far, near:], far, left[far], chosen)
    tight = np.flatnonzero((left == budget) & (count > 0))
    place, sizes = _sizes(candidates, order[tight], tight)
    chosen[np.take_along_axis(place, sizes.argmin(axis=1)[:, None], axis=1)] = True
    return Spans(candidates.start[chosen], candidates.end[chosen])


def _sizes(units: UnitCandidates, order: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Where the units of some rows lie, in the given order (-1: none), and how many tokens each of them has."""
    place = np.where(order >= 0, units.rows[rows, None] + order, 0)
    return place, np.where(order >= 0, units.end[place] - units.start[place], _TOO_LONG)


def _fill_budget(units: UnitCandidates, order: Ints, rows: Ints, budget: Ints, chosen: Bools) -> Ints:
    """Mark the units of some rows that fit, in the given order (-1: none), and return what is left of each budget."""
    place, sizes = _sizes(units, order, rows)
    taken = np.cumsum(sizes, axis=1) <= budget[:, None]
    left: Ints = budget - (sizes * taken).sum(axis=1)
    reached = taken.sum(axis=1)
    column = np.arange(sizes.shape[1])
    active = np.flatnonzero((left > 0) & (reached < sizes.shape[1]))
    while len(active):
        fits = (sizes[active] <= left[active, None]) & (column >= reached[active, None])
        found = fits.any(axis=1)
        active, first = active[found], fits[found].argmax(axis=1)
        taken[active, first] = True
        left[active] -= sizes[active, first]
        reached[active] = first + 1
    chosen[place[taken]] = True
    return left


def sample_runs(
    candidates: UnitCandidates, length_probabilities: tuple[float, ...], target: npt.NDArray[np.float64], key: Key
) -> Spans:
    """Runs of units whose lengths follow `law`, at random places, until the target number of tokens is reached.

    A length is drawn once and kept; only its place is drawn again when it would touch another run or cross a break. So
    the lengths that come out follow the law: rejecting a length for its place would favour short ones. (No run is
    longer than the whole target, so the law is cut on very short rows.)
    The run that reaches the target is kept whole, and the target is lowered by the mean overshoot, so that the law and
    the rate both hold on average (Wald's identity: the last run belongs to a stopping time).
    """
    count = np.diff(candidates.rows)
    some = np.maximum(count, 1)
    size = np.maximum(row_sums(candidates.lengths, candidates.rows) / some, 1)
    spread = row_sums(candidates.lengths**2, candidates.rows) / some / size - size
    longest = np.floor(np.maximum(target / size, 1)).astype(np.int64)
    number = np.minimum(np.arange(1, len(length_probabilities) + 1), longest[:, None])
    mean, square = number @ np.asarray(length_probabilities), number**2 @ np.asarray(length_probabilities)
    goal = target - (square / mean * size + spread) / 2
    tries = np.ceil(2 * np.maximum(target, 1) / (mean * size) + 8).astype(np.int64) * (count > 0)
    rounds = int(tries.max(initial=0))
    lengths = np.minimum(categorical(key.bits(DrawPurpose.LENGTH, rounds), length_probabilities) + 1, longest[:, None])
    places = randint(key.bits(DrawPurpose.PLACE, rounds * _TRIES), some[:, None])
    return _RunPlacer(candidates, len(length_probabilities)).place(
        lengths, places.reshape(len(count), rounds, _TRIES), goal, tries
    )


class _RunPlacer:
    """The grid on which runs are placed. `clear[r, u]` is how long a run starting at unit u of row r may be."""

    def __init__(self, units: UnitCandidates, longest: int) -> None:
        self.units, self.longest = units, longest
        count = np.diff(units.rows)
        self.width = int(count.max(initial=0)) + 2 * longest + 2
        self.clear = np.zeros((len(count), self.width), dtype=np.int64)
        row = np.repeat(np.arange(len(count)), count)
        self.clear[row, positions_in_rows(units.rows) + longest + 1] = units.max_run
        self.reach = np.arange(-longest - 1, longest + 1)

    def place(self, lengths: Ints, places: Ints, goal: npt.NDArray[np.float64], tries: Ints) -> Spans:
        """Place one run a round in every row that has not reached its goal."""
        spent = np.zeros(len(goal), dtype=np.int64)
        first, last = [], []
        for turn in range(lengths.shape[1]):
            rows = np.flatnonzero(((spent < goal) | (spent == 0)) & (turn < tries))
            if not len(rows):
                break
            rows, start, length = self._find_starts(rows, places[rows, turn], lengths[rows, turn])
            self._block(rows, start, length)
            begin = self.units.rows[rows] + start
            first.append(begin)
            last.append(begin + length - 1)
            spent[rows] += self.units.end[last[-1]] - self.units.start[begin]
        return self._spans(first, last, np.flatnonzero((spent == 0) & (np.diff(self.units.rows) > 0)))

    def _find_starts(self, rows: Ints, places: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
        """A free place for each run: the first try that is free, else any place that is, drawn from all of them."""
        free = self.clear[rows[:, None], places + self.longest + 1] >= length[:, None]
        start = places[np.arange(len(rows)), free.argmax(axis=1)]
        stuck = np.flatnonzero(~free.any(axis=1))
        found = np.ones(len(rows), dtype=np.bool_)
        if len(stuck):
            open_ = self.clear[rows[stuck], self.longest + 1 :] >= length[stuck, None]
            number = open_.sum(axis=1)
            pick = places[stuck, 0] % np.maximum(number, 1)
            start[stuck] = (np.cumsum(open_, axis=1) > pick[:, None]).argmax(axis=1)
            found[stuck] = number > 0
        return rows[found], start[found], length[found]

    def _block(self, rows: Ints, start: Ints, length: Ints) -> None:
        """No run may overlap or touch this one: shorten what starts to its left, close its units and the next."""
        column = start[:, None] + self.reach + self.longest + 1
        left = np.maximum(-1 - self.reach, 0)
        free = np.where(self.reach > length[:, None], self.longest, left)
        at = (rows[:, None], column)
        self.clear[at] = np.minimum(self.clear[at], free)

    def _spans(self, first: list[Ints], last: list[Ints], empty: Ints) -> Spans:
        """Rows in which no run found a place get their first unit."""
        begin = np.concatenate([*first, self.units.rows[empty]])
        final = np.concatenate([*last, self.units.rows[empty]])
        order = np.argsort(begin)
        return Spans(self.units.start[begin[order]], self.units.end[final[order]])


def _random_order(units: UnitCandidates, key: Key) -> tuple[Ints, Ints]:
    """The units of each row in random order, the wanted layer first, by number; and how many there are (then -1)."""
    grid, _ = random_grid(key.bits_per_token(DrawPurpose.SELECT, units.rows), units.rows, ~units.is_preferred)
    shift = COLUMN_BITS if grid.dtype == np.uint32 else 32
    order = (np.sort(grid, axis=1) & np.array((1 << shift) - 1, grid.dtype)).astype(np.int64)
    count = np.diff(units.rows)
    if (count < order.shape[1]).any():
        order[np.arange(order.shape[1]) >= count[:, None]] = -1
    return order, count
