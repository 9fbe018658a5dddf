"""The page of a comparison: scores with all seeds, costs, curves against compute, and differences of the recipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unmask.reports.charts.curves import ChartPanel, draw_panel, panel_legend
from unmask.reports.html import render_page
from unmask.reports.text.number_format import Scores


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One row of the table: a member or a baseline, with its scores by task."""

    name: str
    scores: Mapping[str, Scores]
    mean: float
    """Over the tasks; NaN if one is missing."""
    color: tuple[int, ...] = ()
    """Its color; baselines have none."""
    is_measured: bool = True
    """Whether its scores come from runs."""

    def num_seeds(self, tasks: Iterable[str]) -> int:
        """The number of seeds with scores of all tasks."""
        return min((len(self.scores.get(task, ())) for task in tasks), default=0)


@dataclass(frozen=True, slots=True)
class CostRow:
    """The mean cost of pre-training a member, and its final evaluation."""

    name: str
    parameters: int
    steps: float
    tokens: float
    flops: float
    seconds: float
    loss: float
    accuracy: float
    objective: str
    """The objective of loss and accuracy."""


@dataclass(frozen=True, slots=True)
class RecipeDifference:
    """The differences of a recipe to the first one: path, first value, own value."""

    name: str
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """All values of the page."""

    title: str
    description: Sequence[str]
    tasks: Mapping[str, str]
    """The metric of every task."""
    rows: Sequence[MemberRow]
    costs: Sequence[CostRow]
    panels: Sequence[ChartPanel]
    reference: str
    differences: Sequence[RecipeDifference]


def compare_page(report: ComparisonReport) -> str:
    """The whole page."""
    values = {
        "report": report,
        "score_columns": ("member", *(f"{task} ({metric})" for task, metric in report.tasks.items()), "mean", "n"),
        "panels": [(one.english, one.chinese, panel_legend(one), draw_panel(one)) for one in report.panels],
    }
    return render_page("compare.html", f"compared: {report.title}", values, ("walk.css", "run.css"), "run.js")
