"""Encoded examples with their targets, from which batches are drawn.

A group is the unit of sampling and is never split: one row, or a question with all its choices. The targets of all rows
are kept as columns; a batch gets the target record of its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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
    """The targets of all rows of a dataset."""

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The targets of some rows, which form the batch `inputs`; `groups` are offsets of groups over them."""


class FeatureCache(Protocol):
    """The cached states of a frozen encoder for all rows of a dataset."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, and the tokens that they belong to: all, or the first of each row."""


@dataclass(frozen=True, slots=True)
class NoTargets:
    """Unlabelled rows."""

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """No targets."""
        return ()


@dataclass(frozen=True, slots=True)
class NoCache:
    """No cached states: the encoder runs on every batch."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """All tokens, no states."""
        return inputs, ()


@dataclass(frozen=True, slots=True)
class RowTargets:
    """One value per row: a class, a number, a set of labels, or the relevance of a candidate.

    `all_rows` is the target record of the whole dataset. The groups of `CandidateGroups` are those of the batch.
    """

    all_rows: RowClass | RowValue | RowMultiLabel | CandidateGroups

    @property
    def value(self) -> Ints | Doubles | Bits:
        """The values of all rows."""
        value: Ints | Doubles | Bits = self.all_rows.value
        return value

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The values of some rows."""
        record: Any = self.all_rows
        found: Target = replace(record, value=record.value[rows])
        return (replace(found, groups=groups) if isinstance(found, CandidateGroups) else found,)


@dataclass(frozen=True, slots=True)
class TokenLabelColumn:
    """Classes of some tokens of each row."""

    name: str
    begin: Ints
    """Offsets: the labels of row i are `begin[i]:begin[i + 1]`."""
    position: Ints
    """The position of each labelled token in its row."""
    value: Ints

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The labels of some rows, at positions of the batch."""
        counts = np.diff(self.begin)[rows]
        chosen = concat_ranges(self.begin[rows], counts)
        positions = self.position[chosen] + np.repeat(inputs.rows[:-1], counts)
        return (TokenLabels(self.name, positions, self.value[chosen]),)


@dataclass(frozen=True, slots=True)
class SpanColumn:
    """The answer span of each row as an `AnswerSpan` whose positions count inside the row; both 0 for no answer."""

    all_rows: AnswerSpan

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The spans of some rows, at positions of the batch."""
        begin, spans = inputs.rows[:-1], self.all_rows
        return (AnswerSpan(spans.name, begin + spans.start[rows], begin + spans.end[rows]),)


NO_TARGETS = NoTargets()
NO_CACHE = NoCache()


@dataclass(frozen=True, slots=True)
class EncodedDataset:
    """Encoded rows in groups, with their targets."""

    rows: EncodedRows
    targets: TargetColumn = NO_TARGETS
    groups: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Offsets: group i is the rows `groups[i]:groups[i + 1]`. Empty: every row is a group."""
    feature_cache: FeatureCache = NO_CACHE
    notes: tuple[str, ...] = ()
    """What was done with inputs that are longer than a row, in sentences for the user."""

    def __len__(self) -> int:
        return len(self.group_offsets) - 1

    @property
    def group_offsets(self) -> Ints:
        """Offsets of the groups over the rows."""
        return self.groups if len(self.groups) else np.arange(len(self.rows) + 1)

    @property
    def max_group_rows(self) -> int:
        """The size of the largest group."""
        return int(np.diff(self.group_offsets).max())

    def take(self, indices: Ints) -> InputsAndTargets:
        """Some groups with their targets."""
        counts = np.diff(self.group_offsets)[indices]
        return self.take_rows(concat_ranges(self.group_offsets[indices], counts), offsets(counts))

    def take_rows(self, rows: Ints, groups: Ints) -> InputsAndTargets:
        """Some rows with their targets, in groups with these offsets."""
        inputs, states = self.feature_cache.at(rows, self.rows.take(rows))
        return InputsAndTargets(inputs, self.targets.at(rows, inputs, groups), states)

    def without_targets(self, rows: Ints) -> InputsAndTargets:
        """Some rows without their targets."""
        inputs, states = self.feature_cache.at(rows, self.rows.take(rows))
        return InputsAndTargets(inputs, (), states)

    def batches_by_length(self, max_rows: int) -> list[Ints]:
        """All groups in batches of about `max_rows` rows of similar length, for evaluation."""
        longest = np.maximum.reduceat(self.rows.lengths, self.group_offsets[:-1])
        order = np.argsort(longest, kind="stable")
        at_once = max(1, max_rows // self.max_group_rows)
        return [order[first : first + at_once] for first in range(0, len(order), at_once)]
