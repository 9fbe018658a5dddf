"""Audits as plain text for 80 columns, and as JSON data."""

from __future__ import annotations

from typing import TypedDict

from unmask.audits.finding import (
    AtLeast,
    Expected,
    Finding,
    Findings,
    FindingUnit,
    Histogram,
    Section,
    Unspecified,
    Verdict,
    plural,
)

BAR_WIDTH = 48
"""The width of the longest bar."""
_RULES = {Expected: "expected", AtLeast: "at_least", Unspecified: "unspecified"}


class FindingData(TypedDict):
    """A finding as JSON data. `rule` is the kind of `expected`, which is null for an unspecified one.

    The tolerance widens either: a measured value may deviate by it.
    """

    name: str
    unit: str
    measured: float
    rule: str
    expected: float | None
    tolerance: float
    verdict: str


class HistogramData(TypedDict):
    """A histogram as JSON data: `shares[i]` and `law[i]` belong to the length `first + i`."""

    name: str
    first: int
    shares: list[float]
    law: list[float]
    count: int


class SectionData(TypedDict):
    """A section as JSON data."""

    task: str
    length: int
    rows: int
    tokens: int
    findings: list[FindingData]
    histograms: list[HistogramData]


class AuditData(TypedDict):
    """An audit as JSON data."""

    name: str
    holds: bool
    sections: list[SectionData]


def format_number(value: float, unit: FindingUnit) -> str:
    """A number in its unit: `15.03 %`, `3.80`, `2,000`."""
    match unit:
        case FindingUnit.SHARE:
            return f"{100 * value:.2f} %"
        case FindingUnit.MEAN:
            return f"{value:.2f}"
        case FindingUnit.COUNT:
            return f"{value:,.0f}"


def format_expected(finding: Finding) -> str:
    """The expectation: a value, with its tolerance if any; a dash where there is none."""
    rule = finding.rule
    if isinstance(rule, Unspecified):
        return "-"
    if isinstance(rule, AtLeast):
        return f"> {format_number(max(rule.value - rule.tolerance, 0.0), finding.unit)}"
    if not rule.tolerance:
        return format_number(rule.value, finding.unit)
    return f"{format_number(rule.value, finding.unit)} ±{_tolerance(rule.tolerance, finding)}"


def histogram_lines(histogram: Histogram) -> list[str]:
    """One line for each length: the length, its fraction, the expected one, and a bar with both."""
    top = max(*histogram.shares, *histogram.expected_shares, 1e-9)
    last = max(
        (
            i
            for i in range(len(histogram.expected_shares))
            if histogram.shares[i] or histogram.expected_shares[i] > 1e-4
        ),
        default=0,
    )
    return [
        f"{histogram.first + i:>6} {100 * histogram.shares[i]:>7.2f} % {100 * histogram.expected_shares[i]:>7.2f} %  "
        + _bar(histogram.shares[i] / top, histogram.expected_shares[i] / top)
        for i in range(last + 1)
    ]


def heading(section: Section) -> str:
    """The audited task in one line."""
    rows, tokens = _count_text(section.rows, "row"), _count_text(section.tokens, "token")
    return f"{section.task}, rows of {section.length}: {rows}, {tokens}"


def verdict_line(findings: Findings) -> str:
    """The verdict in one line."""
    judged = sum(finding.verdict in (Verdict.HOLDS, Verdict.BROKEN) for finding in findings)
    broken, unjudged = findings.broken, len(findings.undecided)
    rest = f"; {unjudged} could not be judged, too few rows." if unjudged else "."
    if not broken:
        verdict = f"every judged rule holds ({judged})" if unjudged else f"every rule holds ({judged} judged)"
        return f"{findings.name}: {verdict}{rest}"
    names = "; ".join(dict.fromkeys(finding.name for finding in broken))
    return f"{findings.name}: {len(broken)} of {_count_text(judged, 'rule')} broken: {names}{rest}"


def to_json_data(findings: Findings) -> AuditData:
    """The audit as JSON data."""
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
        "rule": _RULES[type(rule)],
        "expected": None if isinstance(rule, Unspecified) else rule.value,
        "tolerance": 0.0 if isinstance(rule, Unspecified) else rule.tolerance,
        "verdict": str(finding.verdict),
    }


def _histogram(histogram: Histogram) -> HistogramData:
    return {
        "name": histogram.name,
        "first": histogram.first,
        "shares": list(histogram.shares),
        "law": list(histogram.expected_shares),
        "count": histogram.count,
    }


def _tolerance(size: float, finding: Finding) -> str:
    """A tolerance in points for a fraction, without decimals if it is too wide."""
    if finding.unit is not FindingUnit.SHARE:
        return format_number(size, finding.unit)
    return f"{100 * min(size, 1.0):.0f}" if finding.is_vague else f"{100 * size:.2f}"


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else plural(what)}"


def _bar(share: float, law: float) -> str:
    """The measured fraction as `#`, the expected one as `|`: wide characters have two columns in a Chinese terminal."""
    cells = ["#"] * round(share * BAR_WIDTH)
    place = max(round(law * BAR_WIDTH) - 1, 0)
    cells += [" "] * (place + 1 - len(cells))
    cells[place] = "|"
    return "".join(cells)
