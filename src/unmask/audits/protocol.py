"""The one protocol of this folder: a measure counts on batches, and judges what the counts add up to.

What arrives: batches, one after another. What leaves: findings.
What never happens here: keeping rows. Counts are a vector that adds up, so an audit of any size needs no more memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from unmask.audits.finding import Finding, Histogram, Numbers
from unmask.audits.rows import AuditBatch

MeasureOutput: TypeAlias = Iterator[Finding | Histogram]


class Measure(Protocol):
    """One question about a rule. A frozen dataclass that holds the part it is asked about."""

    def count(self, batch: AuditBatch) -> Numbers:
        """What this batch adds: always the same number of numbers, in the same order."""

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """The findings that the sums of all batches lead to."""
