"""Encoded questions with their truths: what a course draws batches from.

What arrives: rows of tokens, and the truth about them. What leaves: an `Instance` of any items.
What never happens here: an item torn apart. An item is what is learned at once: a row, a window of a long text, a
question with all its choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from unmask.ragged import offsets, ranges
from unmask.records import (
    Among,
    Amount,
    Amounts,
    Bits,
    Extract,
    Fact,
    Floats,
    Inputs,
    Instance,
    Ints,
    Labels,
    Tags,
    Target,
)
from unmask.tune.encode import Encoded


class Truth(Protocol):
    """What is true about all rows of an exercise."""

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """The truth about some rows. `inputs` are these rows as a batch; `items` are offsets of items over them."""


class Memory(Protocol):
    """What a network at rest makes of all rows of an exercise."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, and the tokens that they belong to: all of them, or the first of each row."""


@dataclass(frozen=True, slots=True)
class Untold:
    """No truth is known: the questions are only to be answered."""

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class Unmet:
    """Nothing is remembered: the network has to read."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """All tokens, no states."""
        return inputs, ()


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A class for each row."""

    name: str
    value: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their classes."""
        return (Fact(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class RowAmounts:
    """A number for each row."""

    name: str
    value: Amounts

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their numbers."""
        return (Amount(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class RowLabels:
    """One bit for each row and label."""

    name: str
    value: Bits

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their bits."""
        return (Labels(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class TokenTags:
    """Classes of some tokens of each row."""

    name: str
    begin: Ints
    """Offsets: the tags of row i are `begin[i]:begin[i + 1]`."""
    place: Ints
    """Where each tagged token stands in its row."""
    value: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their tags, at the places of the batch."""
        counts = np.diff(self.begin)[rows]
        chosen = ranges(self.begin[rows], counts)
        return (Tags(self.name, self.place[chosen] + np.repeat(inputs.rows[:-1], counts), self.value[chosen]),)


@dataclass(frozen=True, slots=True)
class RowSpans:
    """The first and the last token of the answer in each row, counted inside the row; both 0 where there is none."""

    name: str
    start: Ints
    end: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their spans, as places of the batch."""
        begin = inputs.rows[:-1]
        return (Extract(self.name, begin + self.start[rows], begin + self.end[rows]),)


@dataclass(frozen=True, slots=True)
class GroupValues:
    """How right each row of its item is."""

    name: str
    value: Amounts

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their values, with the items as groups."""
        return (Among(self.name, items, self.value[rows]),)


UNTOLD = Untold()
UNMET = Unmet()


@dataclass(frozen=True, slots=True)
class Exercise:
    """Encoded rows in items, with the truth about them."""

    rows: Encoded
    truth: Truth = UNTOLD
    items: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Offsets: item i is the rows `items[i]:items[i + 1]`. Empty: every row is an item."""
    memory: Memory = UNMET
    notes: tuple[str, ...] = ()
    """What became of inputs that are longer than a row, in sentences for the user."""

    def __len__(self) -> int:
        return len(self.begin) - 1

    @property
    def begin(self) -> Ints:
        """Offsets of the items over the rows."""
        return self.items if len(self.items) else np.arange(len(self.rows) + 1)

    @property
    def most(self) -> int:
        """The most rows that an item has."""
        return int(np.diff(self.begin).max())

    def at(self, chosen: Ints) -> Instance:
        """Some items with their truths."""
        counts = np.diff(self.begin)[chosen]
        return self.of_rows(ranges(self.begin[chosen], counts), offsets(counts))

    def of_rows(self, rows: Ints, items: Ints) -> Instance:
        """Some rows with their truths, in items with these offsets."""
        inputs, states = self.memory.at(rows, self.rows.take(rows))
        return Instance(inputs, self.truth.at(rows, inputs, items), states)

    def shown(self, rows: Ints) -> Instance:
        """Some rows without their truths."""
        inputs, states = self.memory.at(rows, self.rows.take(rows))
        return Instance(inputs, (), states)

    def by_length(self, most: int) -> list[Ints]:
        """All items, in batches of about `most` rows and of like length, where the order is of no matter."""
        longest = np.maximum.reduceat(self.rows.lengths, self.begin[:-1])
        order = np.argsort(longest, kind="stable")
        at_once = max(1, most // self.most)
        return [order[first : first + at_once] for first in range(0, len(order), at_once)]
