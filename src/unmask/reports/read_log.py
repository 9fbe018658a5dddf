"""A record as it is read, line by line: numbers become columns, so a run of a million steps fits in memory.

What arrives: the lines of a `record.jsonl`. What leaves: one series for each number, starts, samples, row lengths.
What never happens here: two lives of a run mixed. Steps that a kill has undone are dropped when they are written anew.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Reals: TypeAlias = npt.NDArray[np.float64]
Json: TypeAlias = dict[str, Any]

_NOT_PLOTTED = {"step", "tokens", "length", "count"}
"""Numbers that say where a line stands, or how much is behind it. Every other number of a line is a curve."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One number through a run: at which steps it was written, after how many tokens, and its values."""

    step: Reals
    tokens: Reals
    value: Reals

    def __len__(self) -> int:
        return len(self.value)


@dataclass(slots=True)
class _Table:
    """Lines of one kind: where each stands, and a column for every number; a gap where a line does not have it."""

    step: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[float] = field(default_factory=lambda: array("d"))
    columns: dict[str, array[float]] = field(default_factory=dict)

    def add(self, step: int, line: Json) -> None:
        """Add a line. A step that is written again takes the place of what it was, and of all that came after."""
        if self.step and self.step[-1] >= step:
            self.cut(step - 1)
        for name, value in _numbers(line):
            column = self.columns.setdefault(name, array("d"))
            _fill(column, len(self.step))
            column.append(value)
        self.step.append(step)
        self.tokens.append(float(line.get("tokens", 0)))

    def cut(self, step: int) -> None:
        """Drop what was written after a step."""
        kept = bisect_right(self.step, step)
        for column in (self.step, self.tokens, *self.columns.values()):
            del column[kept:]

    def series(self) -> dict[str, MetricSeries]:
        """Every number that has a value anywhere."""
        step, tokens, found = np.array(self.step), np.array(self.tokens), {}
        for name, column in self.columns.items():
            _fill(column, len(step))
            value = np.array(column)
            there = np.isfinite(value)
            if there.any():
                found[name] = MetricSeries(step[there], tokens[there], value[there])
        return found


def _fill(column: array[float], length: int) -> None:
    """Make a column as long as its table, with gaps."""
    if len(column) < length:
        column.extend([nan] * (length - len(column)))


@dataclass(slots=True)
class LogReader:
    """What was read so far."""

    starts: list[Json] = field(default_factory=list)
    samples: list[Json] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    _training: _Table = field(default_factory=_Table)
    _evals: _Table = field(default_factory=_Table)

    def add_line(self, line: Json) -> None:
        """Add a line. Kinds that are not known here are left alone."""
        kind, step = str(line["kind"]), int(line["step"])
        match kind:
            case "start":
                self._drop_after(step)
                self.starts.append(line)
            case "samples":
                self.samples.append(_check_sample(line))
            case "step":
                self._training.add(step, line)
                self._add_length(line, step)
            case "eval":
                self._evals.add(step, line)

    def series(self) -> tuple[dict[str, MetricSeries], dict[str, MetricSeries]]:
        """The numbers of the steps and of the trials, by name."""
        return self._training.series(), self._evals.series()

    def _add_length(self, line: Json, step: int) -> None:
        length = int(line.get("length", 0))
        if length and (not self.lengths or self.lengths[-1][1] != length):
            self.lengths.append((step, length))

    def _drop_after(self, step: int) -> None:
        """A run that was killed goes on from its last checkpoint; what came after that is written anew."""
        self._training.cut(step)
        self._evals.cut(step)
        self.samples = [one for one in self.samples if one["step"] <= step]
        self.lengths = [one for one in self.lengths if one[0] <= step]


def _numbers(line: Json) -> Iterator[tuple[str, float]]:
    """Every number of a line, by name; those of an inner object as `loss.mlm`."""
    for name, value in line.items():
        if name in _NOT_PLOTTED:
            continue
        if isinstance(value, int | float):
            yield name, value
        elif isinstance(value, dict):
            for inner, number in value.items():
                yield f"{name}.{inner}", float(number)


def _check_sample(line: Json) -> Json:
    """A sample, once it is found to have the form of one."""
    for row in line["lines"]:
        for place, guesses in row["guesses"].items():
            if not 0 <= int(place) < len(row["shown"]) or place not in row["truth"]:
                raise ValueError(f"the place {place} is not one that is asked for")
            if not all(isfinite(chance) for _, chance in guesses):
                raise ValueError(f"the place {place} has a guess without a probability")
    return line
