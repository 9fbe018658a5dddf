"""The audit of a run's corpus, if it is still where the run found it.

What arrives: a run's recipe, and the folder that it names. What leaves: tables and bars, or the reason for their lack.
What never happens here: an audit of something else. A corpus that was prepared anew is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.audits.audit import ROWS, audit
from unmask.audits.finding import Findings, Histogram, Section, Verdict
from unmask.audits.render import format_expected, format_number, heading, verdict_line
from unmask.core.errors import UserError
from unmask.core.io.atomic import digest_file
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.reports.html.elements import Html, span, table, tag, text
from unmask.reports.pages.run.about import MissingPart, recipe_of
from unmask.reports.read_run import RunRecord
from unmask.reports.text.number_format import format_percent

_CSS = {
    Verdict.HOLDS: "yes",
    Verdict.BROKEN: "no",
    Verdict.REPORTED: "soft",
    Verdict.TOO_FEW: "soft",
}


def audit_run(record: RunRecord, rows: int = ROWS) -> Findings | MissingPart:
    """Audit what a run learned from, or say why that cannot be done."""
    corpus, recipe = record.metadata.get("corpus"), recipe_of(record)
    if isinstance(recipe, MissingPart):
        return MissingPart(f"No audit. {recipe.reason}")
    if not isinstance(corpus, dict) or not corpus.get("folder"):
        return MissingPart("No audit: the run does not name the corpus it learned from.")
    folder = Path(corpus["folder"])
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return MissingPart(
            f"No audit: there is no prepared corpus in {folder} now; the run learned from one that was there."
        )
    if digest_file(manifest) != corpus.get("manifest"):
        return MissingPart(f"No audit: the corpus in {folder} is another one than the run learned from.")
    try:
        return audit(recipe, Corpus.open(folder), Key.of(int(record.metadata.get("seed", 0))), rows)
    except (UserError, OSError) as error:
        return MissingPart(f"No audit: {error}")


def audit_html(found: Findings | MissingPart) -> Iterator[Html]:
    """One line of verdict, then every section folded."""
    if isinstance(found, MissingPart):
        yield tag("p", "about", text(found.reason))
        return
    yield tag("p", "", span("yes" if found.holds else "no", verdict_line(found)))
    for section in found.sections:
        bars = (part for histogram in section.histograms for part in _bars(histogram))
        yield tag("details", "fold", tag("summary", "", text(heading(section))), _table(section), *bars)


def _table(section: Section) -> Html:
    rows = []
    for finding in section.findings:
        said = span(_CSS[finding.verdict], finding.verdict)
        numbers = format_number(finding.measured, finding.unit), format_expected(finding)
        cells = tag("td", "", text(finding.name)), *(tag("td", "number", text(one)) for one in numbers)
        rows.append((*cells, tag("td", "", said)))
    return table(("", "measured", "rule", "verdict"), rows)


def _bars(histogram: Histogram) -> Iterator[Html]:
    """A bar for each length, with a tick where the law wants its end."""
    top = max(*histogram.shares, *histogram.expected_shares, 1e-9)
    yield tag("p", "about", text(f"{histogram.name}: measured, and the law as a tick"))
    for place, (share, law) in enumerate(zip(histogram.shares, histogram.expected_shares, strict=True)):
        if share or law > 1e-4:
            bar = Html(
                f'<span class="bar"><i style="width:{100 * share / top:.1f}%"></i>'
                f'<b style="left:{100 * law / top:.1f}%"></b></span>'
            )
            yield tag(
                "div", "length", span("soft", histogram.first + place), bar, span("number", format_percent(share))
            )
