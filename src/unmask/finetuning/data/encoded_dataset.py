"""Encoded questions with their truths: what a course draws batches from.

What arrives: rows of tokens, and the truth about them. What leaves: an `Instance` of any items.
What never happens here: an item torn apart. An item is what is learned at once: a row, a window of a long text, a
question with all its choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from unmask.core.ragged import concat_ranges, offsets
from unmask.core.records import (
    AnswerSpan,
    Bits,
    CandidateGroups,
    Doubles,
    Floats,
    Inputs,
    InputsAndTargets,
    Ints,
    RowClass,
    RowMultiLabel,
    RowValue,
    Target,
    TokenLabels,
)
from unmask.finetuning.data.encode import EncodedRows


class TargetColumn(Protocol):
    """What is true about all rows of an exercise."""

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """The truth about some rows. `inputs` are these rows as a batch; `items` are offsets of items over them."""


class FeatureCache(Protocol):
    """What a network at rest makes of all rows of an exercise."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, and the tokens that they belong to: all of them, or the first of each row."""


@dataclass(frozen=True, slots=True)
class NoTargets:
    """No truth is known: the questions are only to be answered."""

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class NoCache:
    """Nothing is remembered: the network has to read."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """All tokens, no states."""
        return inputs, ()


@dataclass(frozen=True, slots=True)
class RowClasses:
    """A class for each row."""

    name: str
    value: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their classes."""
        return (RowClass(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class RowValues:
    """A number for each row."""

    name: str
    value: Doubles

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their numbers."""
        return (RowValue(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class RowMultiLabels:
    """One bit for each row and label."""

    name: str
    value: Bits

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their bits."""
        return (RowMultiLabel(self.name, self.value[rows]),)


@dataclass(frozen=True, slots=True)
class TokenLabelColumn:
    """Classes of some tokens of each row."""

    name: str
    begin: Ints
    """Offsets: the tags of row i are `begin[i]:begin[i + 1]`."""
    position: Ints
    """Where each tagged token stands in its row."""
    value: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their tags, at the places of the batch."""
        counts = np.diff(self.begin)[rows]
        chosen = concat_ranges(self.begin[rows], counts)
        return (
            TokenLabels(self.name, self.position[chosen] + np.repeat(inputs.rows[:-1], counts), self.value[chosen]),
        )


@dataclass(frozen=True, slots=True)
class SpanColumn:
    """The first and the last token of the answer in each row, counted inside the row; both 0 where there is none."""

    name: str
    start: Ints
    end: Ints

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their spans, as places of the batch."""
        begin = inputs.rows[:-1]
        return (AnswerSpan(self.name, begin + self.start[rows], begin + self.end[rows]),)


@dataclass(frozen=True, slots=True)
class CandidateValues:
    """How right each row of its item is."""

    name: str
    value: Doubles

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their values, with the items as groups."""
        return (CandidateGroups(self.name, items, self.value[rows]),)


NO_TARGETS = NoTargets()
NO_CACHE = NoCache()


@dataclass(frozen=True, slots=True)
class EncodedDataset:
    """Encoded rows in items, with the truth about them."""

    rows: EncodedRows
    targets: TargetColumn = NO_TARGETS
    groups: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Offsets: item i is the rows `items[i]:items[i + 1]`. Empty: every row is an item."""
    feature_cache: FeatureCache = NO_CACHE
    notes: tuple[str, ...] = ()
    """What became of inputs that are longer than a row, in sentences for the user."""

    def __len__(self) -> int:
        return len(self.group_offsets) - 1

    @property
    def group_offsets(self) -> Ints:
        """Offsets of the items over the rows."""
        return self.groups if len(self.groups) else np.arange(len(self.rows) + 1)

    @property
    def max_group_rows(self) -> int:
        """The most rows that an item has."""
        return int(np.diff(self.group_offsets).max())

    def take(self, indices: Ints) -> InputsAndTargets:
        """Some items with their truths."""
        counts = np.diff(self.group_offsets)[indices]
        return self.take_rows(concat_ranges(self.group_offsets[indices], counts), offsets(counts))

    def take_rows(self, rows: Ints, items: Ints) -> InputsAndTargets:
        """Some rows with their truths, in items with these offsets."""
        inputs, states = self.feature_cache.at(rows, self.rows.take(rows))
        return InputsAndTargets(inputs, self.targets.at(rows, inputs, items), states)

    def without_targets(self, rows: Ints) -> InputsAndTargets:
        """Some rows without their truths."""
        inputs, states = self.feature_cache.at(rows, self.rows.take(rows))
        return InputsAndTargets(inputs, (), states)

    def batches_by_length(self, most: int) -> list[Ints]:
        """All items, in batches of about `most` rows and of like length, where the order is of no matter."""
        longest = np.maximum.reduceat(self.rows.lengths, self.group_offsets[:-1])
        order = np.argsort(longest, kind="stable")
        at_once = max(1, most // self.max_group_rows)
        return [order[first : first + at_once] for first in range(0, len(order), at_once)]
