"""Findings: a measured number, the rule about it, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]

SIGMAS = 4.0
"""The tolerance of a fraction in standard errors. Chance exceeds it once in 16,000 findings."""
MAX_SHARE_TOLERANCE = 0.1
"""The largest tolerance of a verdict, in points or as a fraction of a mean; a wider one proves nothing."""
MAX_MEAN_TOLERANCE = 0.25


class Verdict(StrEnum):
    """The verdict about one number."""

    HOLDS = "holds"
    BROKEN = "broken"
    REPORTED = "reported"
    """No expectation."""
    TOO_FEW = "too few rows"
    """The number is inside its tolerance, but the tolerance is too wide."""


class FindingUnit(StrEnum):
    """The unit of a number."""

    SHARE = "share"
    COUNT = "count"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected value with a tolerance."""

    value: float
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A lower limit, less a tolerance."""

    value: float
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Unspecified:
    """No expectation."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured number and its expectation."""

    name: str
    measured: float
    rule: Expected | AtLeast | Unspecified
    unit: FindingUnit
    advice: str = ""
    """The remedy if the rule is broken, where known."""

    @property
    def verdict(self) -> Verdict:
        """The verdict from number and rule; rounding errors of the sums do not break a rule."""
        match self.rule:
            case Unspecified():
                return Verdict.REPORTED
            case AtLeast(value, tolerance):
                kept = self.measured > value - tolerance
            case Expected(value, tolerance):
                kept = abs(self.measured - value) <= tolerance + 1e-9
        if not kept:
            return Verdict.BROKEN
        return Verdict.TOO_FEW if self.is_vague else Verdict.HOLDS

    @property
    def is_vague(self) -> bool:
        """Whether the tolerance is too wide for a verdict."""
        if isinstance(self.rule, Unspecified) or self.unit is FindingUnit.COUNT:
            return False
        widest = MAX_SHARE_TOLERANCE if self.unit is FindingUnit.SHARE else MAX_MEAN_TOLERANCE * self.rule.value
        return self.rule.tolerance > widest


@dataclass(frozen=True, slots=True)
class Histogram:
    """The fraction of each length, next to its expected distribution."""

    name: str
    first: int
    """The length of the first fraction."""
    shares: tuple[float, ...]
    expected_shares: tuple[float, ...]
    count: int
    """The number of counted lengths."""


@dataclass(frozen=True, slots=True)
class Section:
    """The audit of one task at one row length."""

    task: str
    length: int
    rows: int
    tokens: int
    findings: tuple[Finding, ...]
    histograms: tuple[Histogram, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """The whole audit."""

    name: str
    sections: tuple[Section, ...]

    def __iter__(self) -> Iterator[Finding]:
        return (finding for section in self.sections for finding in section.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings with a broken rule."""
        return tuple(finding for finding in self if finding.verdict is Verdict.BROKEN)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The findings with too few rows for a verdict."""
        return tuple(finding for finding in self if finding.verdict is Verdict.TOO_FEW)

    @property
    def holds(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken


def labelled_by_target(name: str, share: float) -> str:
    """A name with the fraction of the rule, where the text limits what is possible."""
    return f"{name} ({100 * share:.4g} % wanted)"


def plural(word: str) -> str:
    """The plural of a unit kind: `words`, `entities`."""
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def violation(name: str, count: float) -> Finding:
    """The number of occurrences of an error; the rule allows none."""
    return Finding(name, float(count), Expected(0.0), FindingUnit.COUNT)


def informational(name: str, value: float, unit: FindingUnit) -> Finding:
    """A number without an expectation."""
    return Finding(name, float(value), Unspecified(), unit)


def share_finding(name: str, hits: float, total: float, expected: float, draws: float) -> Finding:
    """A fraction of independent draws, compared with its probability."""
    return Finding(name, ratio(hits, total), Expected(expected, sampling_tolerance(expected, draws)), FindingUnit.SHARE)


def sampling_tolerance(p: float, draws: float) -> float:
    """The tolerance of a fraction; the second term covers small samples (Bernstein's inequality)."""
    draws = max(draws, 1.0)
    return SIGMAS * sqrt(max(p * (1 - p), 0.0) / draws) + SIGMAS**2 / (3 * draws)


def ratio(part: float, whole: float) -> float:
    """A fraction or a mean; 0 for nothing."""
    return float(part) / float(whole) if whole else 0.0
