"""The log of a run (`record.jsonl`) as series: one column per number, thinned and smoothed for charts.

Steps that were repeated after an interruption replace the earlier ones.
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
"""Numbers of a line that are no curve."""
MAX_POINTS = 500
"""Points of one curve, enough for a wide screen."""
_WINDOWS = 30
"""The length of a curve in smoothing windows."""
_FEW = 24
"""Curves with fewer points are not smoothed."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One number of a run: steps, tokens and values."""

    step: Reals
    tokens: Reals
    value: Reals

    def __len__(self) -> int:
        return len(self.value)


@dataclass(slots=True)
class _Table:
    """Lines of one kind: a column per number, NaN where a line lacks it."""

    step: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[float] = field(default_factory=lambda: array("d"))
    columns: dict[str, array[float]] = field(default_factory=dict)

    def add(self, step: int, line: Json) -> None:
        """Add a line. A repeated step replaces the earlier one and everything after it."""
        if self.step and self.step[-1] >= step:
            self.cut(step - 1)
        for name, value in _numbers(line):
            column = self.columns.setdefault(name, array("d"))
            _fill(column, len(self.step))
            column.append(value)
        self.step.append(step)
        self.tokens.append(float(line.get("tokens", 0)))

    def cut(self, step: int) -> None:
        """Remove everything after a step."""
        kept = bisect_right(self.step, step)
        for column in (self.step, self.tokens, *self.columns.values()):
            del column[kept:]

    def series(self) -> dict[str, MetricSeries]:
        """Every number with a finite value, as a series."""
        step, tokens, found = np.array(self.step), np.array(self.tokens), {}
        for name, column in self.columns.items():
            _fill(column, len(step))
            value = np.array(column)
            there = np.isfinite(value)
            if there.any():
                found[name] = MetricSeries(step[there], tokens[there], value[there])
        return found


def _fill(column: array[float], length: int) -> None:
    """Extend a column with NaN."""
    if len(column) < length:
        column.extend([nan] * (length - len(column)))


@dataclass(slots=True)
class LogReader:
    """Collects the lines of a log."""

    starts: list[Json] = field(default_factory=list)
    samples: list[Json] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    _training: _Table = field(default_factory=_Table)
    _evals: _Table = field(default_factory=_Table)

    def add_line(self, line: Json) -> None:
        """Add a line; other kinds are ignored."""
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
        """The series of the steps and of the evaluations, by name."""
        return self._training.series(), self._evals.series()

    def _add_length(self, line: Json, step: int) -> None:
        length = int(line.get("length", 0))
        if length and (not self.lengths or self.lengths[-1][1] != length):
            self.lengths.append((step, length))

    def _drop_after(self, step: int) -> None:
        """Remove what a resumed run repeats."""
        self._training.cut(step)
        self._evals.cut(step)
        self.samples = [one for one in self.samples if one["step"] <= step]
        self.lengths = [one for one in self.lengths if one[0] <= step]


def _numbers(line: Json) -> Iterator[tuple[str, float]]:
    """Every number of a line by name; nested ones as `loss.mlm`."""
    for name, value in line.items():
        if name in _NOT_PLOTTED:
            continue
        if isinstance(value, int | float):
            yield name, value
        elif isinstance(value, dict):
            for inner, number in value.items():
                yield f"{name}.{inner}", float(number)


def _check_sample(line: Json) -> Json:
    """The line of samples; refuses a malformed one."""
    for row in line["lines"]:
        for place, guesses in row["guesses"].items():
            if not 0 <= int(place) < len(row["shown"]) or place not in row["truth"]:
                raise ValueError(f"the place {place} is not a masked one")
            if not all(isfinite(chance) for _, chance in guesses):
                raise ValueError(f"the place {place} has a guess without a probability")
    return line


def thin(series: MetricSeries, max_points: int = MAX_POINTS) -> MetricSeries:
    """Means over buckets of nearly equal size, each at the last step of its bucket."""
    count = len(series)
    if count <= max_points:
        return series
    starts = np.linspace(0, count, max_points, endpoint=False).astype(np.int64)
    ends = np.append(starts[1:], count) - 1
    sizes = ends - starts + 1
    value: Reals = np.add.reduceat(series.value, starts) / sizes
    return MetricSeries(series.step[ends], series.tokens[ends], value)


def smooth(series: MetricSeries) -> MetricSeries:
    """The moving average of a series. The window is narrow at the beginning, where curves fall fast."""
    count = len(series)
    half = 0 if count < _FEW else max(count // _WINDOWS // 2, 1)
    place = np.arange(count)
    left = np.maximum(place - half, 0)
    right = np.minimum(place + np.minimum(np.maximum(place, half // 4), half), count - 1) + 1
    total = np.append(0.0, np.cumsum(series.value))
    value: Reals = (total[right] - total[left]) / (right - left)
    return MetricSeries(series.step, series.tokens, value)


def tokens_at(series: MetricSeries, steps: Reals) -> Reals:
    """The number of tokens at some steps, by linear interpolation."""
    found: Reals = np.interp(steps, np.append(0.0, series.step), np.append(0.0, series.tokens))
    return found
