"""The audit of the corpus of a run, if the prepared folder still exists unchanged."""

from __future__ import annotations

from pathlib import Path

from unmask.audits.audit import ROWS, audit
from unmask.audits.finding import Finding, Findings, Histogram, Verdict
from unmask.audits.render import format_expected, format_number, heading, verdict_line
from unmask.core.errors import UserError
from unmask.core.io.atomic import digest_file
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.reports.pages.run.about import MissingPart, recipe_of
from unmask.reports.read_run import RunRecord

_CSS = {
    Verdict.HOLDS: "yes",
    Verdict.BROKEN: "no",
    Verdict.REPORTED: "soft",
    Verdict.TOO_FEW: "soft",
}


def audit_run(record: RunRecord, rows: int = ROWS) -> Findings | MissingPart:
    """Audit the corpus of a run, or give the reason why that is impossible."""
    corpus, recipe = record.metadata.get("corpus"), recipe_of(record)
    if isinstance(recipe, MissingPart):
        return MissingPart(f"No audit. {recipe.reason}")
    if not isinstance(corpus, dict) or not corpus.get("folder"):
        return MissingPart("No audit: the run does not name its corpus.")
    folder = Path(corpus["folder"])
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return MissingPart(f"No audit: there is no prepared corpus in {folder} any more.")
    if digest_file(manifest) != corpus.get("manifest"):
        return MissingPart(f"No audit: the corpus in {folder} was changed after the run.")
    try:
        return audit(recipe, Corpus.open(folder), Key.of(int(record.metadata.get("seed", 0))), rows)
    except (UserError, OSError) as error:
        return MissingPart(f"No audit: {error}")


def audit_values(found: Findings | MissingPart) -> dict[str, object]:
    """The values of the template: the verdict, and the sections with their tables and histograms."""
    if isinstance(found, MissingPart):
        return {"reason": found.reason}
    sections = [
        (heading(one), list(map(_row, one.findings)), list(map(_bars, one.histograms))) for one in found.sections
    ]
    return {"reason": "", "holds": found.holds, "verdict": verdict_line(found), "sections": sections}


def _row(finding: Finding) -> tuple[str, ...]:
    measured, expected = format_number(finding.measured, finding.unit), format_expected(finding)
    return finding.name, measured, expected, _CSS[finding.verdict], str(finding.verdict)


def _bars(histogram: Histogram) -> tuple[str, list[tuple[int, str, str, float]]]:
    """A bar per length, with a tick at the expected fraction."""
    largest = max(*histogram.shares, *histogram.expected_shares, 1e-9)
    lengths = enumerate(zip(histogram.shares, histogram.expected_shares, strict=True), start=histogram.first)
    return histogram.name, [
        (length, f"{100 * share / largest:.1f}", f"{100 * expected / largest:.1f}", share)
        for length, (share, expected) in lengths
        if share or expected > 1e-4
    ]
