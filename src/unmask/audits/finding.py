"""What an audit says: one measured number, what the rule says about it, and whether the two agree.

What arrives: numbers that were counted. What leaves: findings and histograms that know their own verdict.
What never happens here: counting. And no verdict is written down; it follows from the number and the rule.
"""

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
"""How many standard errors of the sample a share may be off. Chance alone exceeds it once in 16,000 findings."""
MAX_SHARE_TOLERANCE = 0.1
"""A tolerance above ten points, or above a quarter of a mean, lets nearly anything pass: the sample proves nothing."""
MAX_MEAN_TOLERANCE = 0.25


class Verdict(StrEnum):
    """Whether a rule was kept."""

    HOLDS = "holds"
    BROKEN = "broken"
    REPORTED = "reported"
    """The rule leaves this number open."""
    TOO_FEW = "too few rows"
    """The number is inside its tolerance, but so would almost any other be."""


class FindingUnit(StrEnum):
    """How a number is read."""

    SHARE = "share"
    COUNT = "count"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Expected:
    """The rule gives a value, and a measured one may be off by the tolerance."""

    value: float
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The rule gives a limit that a measured value must exceed, less a tolerance."""

    value: float
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Unspecified:
    """The rule does not say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One number that was measured, and what the rule says about it."""

    name: str
    measured: float
    rule: Expected | AtLeast | Unspecified
    unit: FindingUnit
    advice: str = ""
    """What to do if the rule is broken, where that is known."""

    @property
    def verdict(self) -> Verdict:
        """Follows from the number and the rule; a rounding error of the sums does not break a rule."""
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
        """Whether the tolerance is too wide for a number inside it to say anything."""
        if isinstance(self.rule, Unspecified) or self.unit is FindingUnit.COUNT:
            return False
        widest = MAX_SHARE_TOLERANCE if self.unit is FindingUnit.SHARE else MAX_MEAN_TOLERANCE * self.rule.value
        return self.rule.tolerance > widest


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each length came, in shares, beside the law that it should follow."""

    name: str
    first: int
    """The length that the first share belongs to."""
    shares: tuple[float, ...]
    expected_shares: tuple[float, ...]
    count: int
    """How many lengths were counted."""


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
        """The findings that contradict their rule."""
        return tuple(finding for finding in self if finding.verdict is Verdict.BROKEN)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The findings that came of too few rows to be held against their rule."""
        return tuple(finding for finding in self if finding.verdict is Verdict.TOO_FEW)

    @property
    def holds(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken


def labelled_by_target(name: str, share: float) -> str:
    """A name that also says which share the rule asks for, where the text decides how much of it is possible."""
    return f"{name} ({100 * share:.4g} % wanted)"


def plural(word: str) -> str:
    """Several of them: `words`, `entities`."""
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def violation(name: str, count: float) -> Finding:
    """Something that must not happen, and how often it did."""
    return Finding(name, float(count), Expected(0.0), FindingUnit.COUNT)


def informational(name: str, value: float, unit: FindingUnit) -> Finding:
    """A number that the rule leaves open."""
    return Finding(name, float(value), Unspecified(), unit)


def share_finding(name: str, hits: float, total: float, expected: float, draws: float) -> Finding:
    """A share that came about by so many independent draws, against its probability."""
    return Finding(name, ratio(hits, total), Expected(expected, sampling_tolerance(expected, draws)), FindingUnit.SHARE)


def sampling_tolerance(p: float, draws: float) -> float:
    """How far a share may be off by chance; the second term covers small samples (Bernstein's inequality)."""
    draws = max(draws, 1.0)
    return SIGMAS * sqrt(max(p * (1 - p), 0.0) / draws) + SIGMAS**2 / (3 * draws)


def ratio(part: float, whole: float) -> float:
    """A share or a mean; 0 of nothing is 0."""
    return float(part) / float(whole) if whole else 0.0
