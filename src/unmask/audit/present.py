"""An audit in words: numbers with their units, bars beside their law, one line of verdict, or JSON.

What arrives: findings. What leaves: short plain text, made for 80 columns, and JSON-able data.
What never happens here: colour, or a number that was not measured.
"""

from __future__ import annotations

from typing import TypedDict

from unmask.audit.finding import Above, Finding, Findings, Histogram, Open, Section, Unit, Within

BAR = 48
"""The columns of the longest bar."""


class FindingData(TypedDict):
    """A finding as JSON. `rule` says how to read `expected`: within, above, or open (then it is null)."""

    name: str
    unit: str
    measured: float
    rule: str
    expected: float | None
    tolerance: float
    verdict: str


class HistogramData(TypedDict):
    """A histogram as JSON: `shares[i]` and `law[i]` belong to the length `first + i`."""

    name: str
    first: int
    shares: list[float]
    law: list[float]
    count: int


class SectionData(TypedDict):
    """A section as JSON."""

    task: str
    length: int
    rows: int
    tokens: int
    findings: list[FindingData]
    histograms: list[HistogramData]


class AuditData(TypedDict):
    """A whole audit as JSON."""

    name: str
    holds: bool
    sections: list[SectionData]


def number(value: float, unit: Unit) -> str:
    """A number as a person reads it: `15.03 %`, `3.80`, `2,000`."""
    match unit:
        case Unit.SHARE:
            return f"{100 * value:.2f} %"
        case Unit.MEAN:
            return f"{value:.2f}"
        case Unit.COUNT:
            return f"{value:,.0f}"


def expected(finding: Finding) -> str:
    """What the rule says: a value, with the tolerance if there is one; a dash where it leaves the number open."""
    rule = finding.rule
    if isinstance(rule, Open):
        return "-"
    if isinstance(rule, Above):
        return f"> {number(rule.value, finding.unit)}"
    if not rule.tolerance:
        return number(rule.value, finding.unit)
    size = f"{100 * rule.tolerance:.2f}" if finding.unit is Unit.SHARE else number(rule.tolerance, finding.unit)
    return f"{number(rule.value, finding.unit)} ±{size}"


def bars(histogram: Histogram) -> list[str]:
    """One line for each length: the length, its share, the share of the law, and a bar with the law marked on it."""
    top = max(*histogram.shares, *histogram.law, 1e-9)
    last = max((i for i in range(len(histogram.law)) if histogram.shares[i] or histogram.law[i] > 1e-4), default=0)
    return [
        f"{histogram.first + i:>6} {100 * histogram.shares[i]:>7.2f} % {100 * histogram.law[i]:>7.2f} %  "
        + _bar(histogram.shares[i] / top, histogram.law[i] / top)
        for i in range(last + 1)
    ]


def heading(section: Section) -> str:
    """What was audited, in one line."""
    return f"{section.task}, rows of {section.length}: {section.rows:,} rows, {section.tokens:,} tokens"


def verdict(findings: Findings) -> str:
    """The audit in one line."""
    judged = sum(not isinstance(finding.rule, Open) for finding in findings)
    broken = findings.broken
    if not broken:
        return f"{findings.name}: every rule holds ({judged} judged)."
    names = "; ".join(dict.fromkeys(finding.name for finding in broken))
    return f"{findings.name}: {len(broken)} of {judged} rules broken: {names}."


def data(findings: Findings) -> AuditData:
    """The audit as JSON-able data."""
    return {"name": findings.name, "holds": findings.holds, "sections": [_section(s) for s in findings.sections]}


def _section(section: Section) -> SectionData:
    return {
        "task": section.task,
        "length": section.length,
        "rows": section.rows,
        "tokens": section.tokens,
        "findings": [_finding(finding) for finding in section.findings],
        "histograms": [_histogram(histogram) for histogram in section.histograms],
    }


def _finding(finding: Finding) -> FindingData:
    rule = finding.rule
    return {
        "name": finding.name,
        "unit": str(finding.unit),
        "measured": finding.measured,
        "rule": type(rule).__name__.lower(),
        "expected": None if isinstance(rule, Open) else rule.value,
        "tolerance": rule.tolerance if isinstance(rule, Within) else 0.0,
        "verdict": str(finding.verdict),
    }


def _histogram(histogram: Histogram) -> HistogramData:
    return {
        "name": histogram.name,
        "first": histogram.first,
        "shares": list(histogram.shares),
        "law": list(histogram.law),
        "count": histogram.count,
    }


def _bar(share: float, law: float) -> str:
    """Measured as `#`, the law as `|`. Plain characters, because wide ones are two columns in a Chinese terminal."""
    cells = ["#"] * round(share * BAR)
    place = max(round(law * BAR) - 1, 0)
    cells += [" "] * (place + 1 - len(cells))
    cells[place] = "|"
    return "".join(cells)
