"""The page of an evaluation suite: every task with the scores of all seeds, pre-trained and from scratch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from unmask.reports.charts.svg import draw_dots
from unmask.reports.html import render_page


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One task: the name of its metric, and the scores from both starts by seed."""

    name: str
    score: str
    tuned: tuple[float, ...]
    scratch: tuple[float, ...]
    baseline: float
    """NaN if a trivial baseline has no score."""

    @property
    def gain(self) -> float:
        """The mean gain over random weights; NaN without both."""
        return (
            statistics.fmean(self.tuned) - statistics.fmean(self.scratch) if self.tuned and self.scratch else math.nan
        )

    def dots(self) -> Markup:
        """All scores as dots on a line."""
        scores = [score for score in (*self.tuned, *self.scratch, self.baseline) if math.isfinite(score)]
        return draw_dots((self.tuned, self.scratch), min(scores, default=0.0), max(scores, default=1.0))


def suite_page(name: str, tasks: Sequence[SuiteRow]) -> str:
    """The whole page."""
    return render_page("suite.html", f"suite: {name}", {"name": name, "rows": tasks}, ("walk.css", "run.css"))
