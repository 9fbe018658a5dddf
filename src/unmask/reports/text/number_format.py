"""Numbers as short text: counts, durations, percentages, scores over seeds, and round ticks of an axis."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import TypeAlias

_LETTERS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_TINY = 1e-3
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
Scores: TypeAlias = tuple[float, ...]
"""One score per seed."""


class NumberFormat(StrEnum):
    """The format of the values of a curve."""

    PLAIN = "plain"
    SHARE = "share"
    COUNT = "count"


def format_count(value: float) -> str:
    """A count: `950`, `1,200`, `12.5 k`, `3.4 M`."""
    if abs(value) < 1e4:
        return f"{value:,.0f}"
    size, letter = next(pair for pair in _LETTERS if abs(value) >= pair[0] * 0.9995)
    return f"{_digits(value / size, 3)} {letter}"


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: `42 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{_digits(seconds, 2) if seconds < 10 else whole} s"
    if whole < 10 * _MINUTE:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    if whole < _HOUR:
        return f"{round(whole / _MINUTE)} min"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def format_number(value: float) -> str:
    """A number with three digits: `12.4`, `0.87`."""
    return _digits(value, 3)


def format_percent(value: float) -> str:
    """A fraction in percent: `15.0 %`, `0.31 %`."""
    return f"{100 * value:.{1 if value >= 0.01 or not value else 2}f} %"


def format_mean_std(scores: Scores) -> str:
    """Mean and standard deviation in percent: `82.1 ±0.4`, or `82.1` for one seed; empty without finite scores."""
    if not scores or not all(map(isfinite, scores)):
        return ""
    spread = f" ±{100 * statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{100 * statistics.fmean(scores):.1f}{spread}"


def format_value(value: float, unit: NumberFormat) -> str:
    """One value of a curve."""
    match unit:
        case NumberFormat.SHARE:
            return format_percent(value)
        case NumberFormat.COUNT:
            return format_count(value)
        case NumberFormat.PLAIN:
            return _digits(value, 4)


def ticks(low: float, high: float, about: int) -> tuple[float, ...]:
    """About so many round numbers in a range, in steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > low:
        return (low,)
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(power * size for size in _ROUND if power * size >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return tuple(round(number * step, 12 - floor(log10(step))) for number in range(first, last + 1))


def tick_labels(values: Sequence[float], unit: NumberFormat) -> tuple[str, ...]:
    """The labels of an axis, all with the same number of decimals."""
    gap = min((b - a for a, b in pairwise(values)), default=abs(values[0]) or 1.0)
    scale = 100 if unit is NumberFormat.SHARE else 1
    if unit is NumberFormat.COUNT:
        return tuple(map(format_count, values))
    if unit is NumberFormat.PLAIN and 0 < max(map(abs, values)) < _TINY * 10:
        return tuple(_digits(value, 3) for value in values)
    decimals = _decimals(gap * scale)
    return tuple(f"{scale * value:.{decimals}f}{' %' if unit is NumberFormat.SHARE else ''}" for value in values)


def _decimals(gap: float) -> int:
    """The decimals that distinguish neighbouring ticks."""
    return next((n for n in range(9) if abs(gap * 10**n - round(gap * 10**n)) < 1e-6 * gap * 10**n), 9)


def _digits(value: float, digits: int) -> str:
    """A number with this many significant digits, without trailing zeros; small ones as `2.5e-5`."""
    if 0 < abs(value) < _TINY:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    before = floor(log10(abs(value))) + 1 if value else 1
    written = f"{value:,.{max(digits - (max(before, 1) if abs(value) >= 0.1 else before), 0)}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
