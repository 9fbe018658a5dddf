"""Verdicts on a claim from its measurements: paired differences over seeds, and tables.

An expectation is confirmed if its sign holds in every seed, or if the mean of the paired differences is more than two
standard errors from zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unmask.lab.claims.catalog import Claim, Expectation

_MAX_COLUMNS = 4
"""Arms in one table."""
_RESOURCES = ("parameters", "steps", "tokens", "epochs", "ms per step", "  after", "far n")
"""Prefixes of measurements that are not outcomes: the table shows only their mean."""
_MIN_SEEDS = 3
"""A verdict on fewer seeds is marked."""


@dataclass(frozen=True)
class Measurement:
    """One measurement of all arms: its values by arm, then by seed."""

    name: str
    values: Mapping[str, Mapping[int, float]]
    repeated_over: str = "seeds"
    """What the repetitions are: seeds, or rounds of timing."""

    def paired_differences(self, higher: str, lower: str) -> list[float]:
        """The differences of two arms, or of an arm and a number, seed by seed."""
        ours = self.values.get(higher, {})
        theirs = dict.fromkeys(ours, float(lower)) if lower[:1].isdigit() else self.values.get(lower, {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    @property
    def is_outcome(self) -> bool:
        """Whether the range over seeds is shown."""
        return not self.name.startswith(_RESOURCES)

    def of(self, arm: str) -> list[float]:
        """The values of an arm, ordered by seed."""
        return [value for _, value in sorted(self.values.get(arm, {}).items())]


def verdicts(claim: Claim, found: Sequence[Measurement]) -> Iterator[str]:
    """One sentence for each expectation and each measurement that it matches."""
    for expectation in claim.expectations:
        fitting = [one for one in found if expectation.fits(one.name)]
        yield from (verdict(expectation, one) for one in fitting)
        if not fitting:
            yield f"{expectation.measure}: {expectation.describe()}: not measured."


def verdict(expectation: Expectation, one: Measurement) -> str:
    """The verdict on one expectation, as a sentence."""
    about = f"{one.name}: {expectation.describe()}"
    gaps = one.paired_differences(expectation.higher, expectation.lower)
    if not gaps or not all(map(math.isfinite, gaps)):
        return f"{about}: not measured."
    mean = statistics.fmean(gaps)
    if len(gaps) == 1:
        return f"{about}: undecided, one seed only; difference {mean:+.4f}."
    error = statistics.stdev(gaps) / math.sqrt(len(gaps))
    few = "" if len(gaps) >= _MIN_SEEDS else ", too few"
    numbers = f"mean difference {mean:+.4f} (standard error {error:.4f}, {len(gaps)} {one.repeated_over}{few})"
    if expectation.tolerance:
        is_near = abs(mean) <= expectation.tolerance
        within = f"within {expectation.tolerance:g}" if is_near else "no clear difference"
        is_equal = is_near or not _is_clear(gaps, error)
        return f"{about}: {f'confirmed, {within}' if is_equal else 'not confirmed'}; {numbers}."
    if _is_clear(gaps, error):
        return f"{about}: {'confirmed' if mean > 0 else 'contradicted'}; {numbers}."
    return f"{about}: not confirmed, no clear difference; {numbers}."


def _is_clear(gaps: Sequence[float], error: float) -> bool:
    """Whether all signs agree, or the mean is more than two standard errors from zero."""
    same_sign = all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)
    return same_sign or abs(statistics.fmean(gaps)) > 2 * error


def tables(arms: Sequence[str], found: Sequence[Measurement]) -> Iterator[str]:
    """Every measurement of every arm as mean and range, in lines of at most 80 columns."""
    for first in range(0, len(arms), _MAX_COLUMNS):
        some = arms[first : first + _MAX_COLUMNS]
        yield _line("", some)
        for one in found:
            columns = [one.of(arm) for arm in some]
            if any(columns):
                yield _line(one.name, [_format(statistics.fmean(values)) if values else "-" for values in columns])
            if one.is_outcome and any(len(values) > 1 for values in columns):
                yield _line("", [_range(values) for values in columns])
        yield ""
    by_seed = [one for one in found if one.repeated_over == "seeds"]
    seeds = {arm: max((len(one.of(arm)) for one in by_seed), default=0) for arm in arms}
    yield "seeds: " + ", ".join(f"{arm} {count}" for arm, count in seeds.items())


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:22s}" + "".join(f" {cell:>13s}" for cell in cells)


def _format(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _range(values: Sequence[float]) -> str:
    return f"{_format(min(values))}-{_format(max(values))}" if values else ""
