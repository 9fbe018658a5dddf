"""What the seeds of a claim say: measurements by arm and seed, verdicts in words, and a table.

A claim is borne out if its sign holds in every seed, or if the mean of the paired differences is more than two standard
errors from zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from claims_list import Claim, Expect

_ARMS = 4
"""Arms beside each other."""
_COUNTED = ("parameters", "steps", "tokens", "epochs", "ms a step, shared", "  after", "far n")
"""How the names of measurements begin that are no outcome, so that their mean is enough."""
_ENOUGH = 3
"""Seeds that a verdict should rest on."""


@dataclass(frozen=True)
class Measured:
    """One measurement of all arms: by arm, then by seed."""

    name: str
    values: Mapping[str, Mapping[int, float]]
    each: str = "seeds"
    """What it was measured once for."""

    def paired(self, more: str, less: str) -> list[float]:
        """The differences of two arms, or of an arm and a number, seed by seed."""
        ours = self.values.get(more, {})
        theirs = dict.fromkeys(ours, float(less)) if less[:1].isdigit() else self.values.get(less, {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    @property
    def varies(self) -> bool:
        """Whether it is an outcome, of which each seed has its own."""
        return not self.name.startswith(_COUNTED)

    def of(self, arm: str) -> list[float]:
        """The values of an arm, seed by seed."""
        return [value for _, value in sorted(self.values.get(arm, {}).items())]


def verdicts(claim: Claim, found: Sequence[Measured]) -> Iterator[str]:
    """One sentence for each expectation and each measurement that it is about."""
    for expect in claim.expects:
        fitting = [one for one in found if expect.fits(one.name)]
        yield from (verdict(expect, one) for one in fitting)
        if not fitting:
            yield f"{expect.measure}: {expect.told()}: not measured."


def verdict(expect: Expect, one: Measured) -> str:
    """What the seeds say about one expectation, in a sentence."""
    about = f"{one.name}: {expect.told()}"
    gaps = one.paired(expect.more, expect.less)
    if not gaps or not all(map(math.isfinite, gaps)):
        return f"{about}: not measured."
    middle = statistics.fmean(gaps)
    if len(gaps) == 1:
        return f"{about}: one seed decides nothing; difference {middle:+.4f}."
    error = statistics.stdev(gaps) / math.sqrt(len(gaps))
    few = "" if len(gaps) >= _ENOUGH else ", too few"
    numbers = f"mean difference {middle:+.4f} (standard error {error:.4f}, {len(gaps)} {one.each}{few})"
    if expect.equal:
        same = abs(middle) <= expect.equal or not _clear(gaps, error)
        within = f"within {expect.equal:g}" if abs(middle) <= expect.equal else "no clear difference"
        return f"{about}: {f'borne out, {within}' if same else 'not borne out'}; {numbers}."
    if _clear(gaps, error):
        return f"{about}: {'borne out' if middle > 0 else 'the other way round'}; {numbers}."
    return f"{about}: not borne out, no clear difference; {numbers}."


def _clear(gaps: Sequence[float], error: float) -> bool:
    """Whether a difference is one: its sign holds in every seed, or it is more than two standard errors from zero."""
    same = all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)
    return same or abs(statistics.fmean(gaps)) > 2 * error


def tables(arms: Sequence[str], found: Sequence[Measured]) -> Iterator[str]:
    """Every measurement of every arm: mean, and from the least to the most, as lines of at most 80 columns."""
    for at in range(0, len(arms), _ARMS):
        some = arms[at : at + _ARMS]
        yield _line("", some)
        for one in found:
            columns = [one.of(arm) for arm in some]
            if any(columns):
                yield _line(one.name, [_figure(statistics.fmean(values)) if values else "-" for values in columns])
            if one.varies and any(len(values) > 1 for values in columns):
                yield _line("", [_range(values) for values in columns])
        yield ""
    seeds = {arm: max((len(one.of(arm)) for one in found if one.each == "seeds"), default=0) for arm in arms}
    yield "seeds: " + ", ".join(f"{arm} {count}" for arm, count in seeds.items())


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:22s}" + "".join(f" {cell:>13s}" for cell in cells)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _range(values: Sequence[float]) -> str:
    return f"{_figure(min(values))}-{_figure(max(values))}" if values else ""
