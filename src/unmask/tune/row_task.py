"""What is asked about whole rows: a class out of some, or a number.

What arrives: the truths of a training file, as written. What leaves: a `RowTask`, and truths as numbers.
What never happens here: a class that training has never seen. Such a row is refused with its line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from unmask.errors import InputError
from unmask.records import Amount, Amounts, Fact
from unmask.tune.judge import Judge, Rate
from unmask.tune.sheet import Sheet


class Kind(StrEnum):
    """What is said about a row."""

    CLASSIFY = "classify"
    """One class out of some."""
    REGRESS = "regress"
    """A number."""


@dataclass(frozen=True, slots=True)
class RowTask:
    """A question about whole rows, with everything that the training file decided."""

    kind: Kind
    labels: tuple[str, ...] = ()
    """The classes in the order of their numbers; none for a number."""
    mean: float = 0.0
    """Of the numbers of the training file; they are learned as distances from it ..."""
    spread: float = 1.0
    """... in units of their standard deviation, so that no scale is harder to learn than another."""

    @property
    def objective(self) -> Judge | Rate:
        """What a network learns to say."""
        return Judge(len(self.labels)) if self.kind is Kind.CLASSIFY else Rate()

    def truth(self, sheet: Sheet) -> Fact | Amount:
        """The truths of a sheet, as a network is told them."""
        if self.kind is Kind.REGRESS:
            return Amount(Rate.name, (amounts(sheet) - self.mean) / self.spread)
        return Fact(Judge.name, self._numbers(sheet))

    def _numbers(self, sheet: Sheet) -> np.ndarray:
        number = {label: place for place, label in enumerate(self.labels)}
        for truth, where in zip(sheet.truths, sheet.where, strict=True):
            if truth not in number:
                raise InputError(
                    f"{where}: the label {truth!r} does not occur in the training file, which has {told(self.labels)}. "
                    "Correct the line, or add rows with this label to the training file."
                )
        return np.array([number[truth] for truth in sheet.truths], dtype=np.int64)


def learn_task(sheet: Sheet, kind: Kind) -> RowTask:
    """What a training file asks, once its kind is known."""
    if kind is Kind.REGRESS:
        return _rating(sheet)
    labels = _in_order(set(sheet.truths))
    if len(labels) < 2:
        raise InputError(
            f"{sheet.name}: all {len(sheet):,} rows have the label {labels[0]!r}. A choice needs at least two classes."
        )
    return RowTask(Kind.CLASSIFY, labels)


def guess_kind(sheet: Sheet) -> Kind:
    """A number if all truths are numbers and one of them is not whole; else a class."""
    try:
        numbers = [float(truth) for truth in sheet.truths]
    except ValueError:
        return Kind.CLASSIFY
    return Kind.CLASSIFY if all(number.is_integer() for number in numbers) else Kind.REGRESS


def amounts(sheet: Sheet) -> Amounts:
    """The truths of a sheet as numbers."""
    return np.array([_number(*pair) for pair in zip(sheet.truths, sheet.where, strict=True)], dtype=np.float64)


def shares(sheet: Sheet, most: int = 6) -> str:
    """How the rows spread over the classes, for a person to read."""
    counts = Counter(sheet.truths)
    kept = _in_order(set(sheet.truths))[:most]
    rest = f", and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(f"{label} ({counts[label] / len(sheet):.0%})" for label in kept) + rest


def told(labels: Sequence[str], most: int = 8) -> str:
    """Some labels in words."""
    return ", ".join(labels[:most]) + (f" and {len(labels) - most} more" if len(labels) > most else "")


def _rating(sheet: Sheet) -> RowTask:
    numbers = amounts(sheet)
    spread = float(numbers.std())
    if not spread:
        raise InputError(
            f"{sheet.name}: all {len(sheet):,} rows have the score {sheet.truths[0]}; nothing can be learned."
        )
    return RowTask(Kind.REGRESS, (), float(numbers.mean()), spread)


def _number(truth: str, where: str) -> float:
    try:
        number = float(truth)
    except ValueError:
        raise InputError(
            f"{where}: the score {truth!r} is no number. Correct the line, or use --kind classify."
        ) from None
    if not math.isfinite(number):
        raise InputError(f"{where}: the score {truth!r} is not a finite number. Correct the line, or remove it.")
    return number


def _in_order(labels: set[str]) -> tuple[str, ...]:
    """Whole numbers by size, words by their letters."""
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))
