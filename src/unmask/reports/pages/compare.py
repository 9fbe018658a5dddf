"""Members compared, as one page: scores with all seeds, what each cost, curves against compute, and how recipes differ.

What arrives: finished numbers. What leaves: HTML with its style inside.
What never happens here: a mean without its spread and its number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unmask.reports.charts.curves import NUM_COLORS
from unmask.reports.charts.metric_vs_compute import ChartPanel, draw_panel, panel_legend
from unmask.reports.html.elements import Html, span, table, tag, text
from unmask.reports.html.page import page
from unmask.reports.text.number_format import format_count, format_duration, format_number, format_percent
from unmask.reports.text.score_format import Scores, format_mean_std

_COSTS = ("member", "parameters", "steps", "tokens", "FLOPs", "time", "held-out loss", "right", "of")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One line of the table: a member or a baseline, and its scores by task."""

    name: str
    scores: Mapping[str, Scores]
    mean: float
    """Over the tasks; not a number where one is missing."""
    color: tuple[int, ...] = ()
    """Its colour; baselines have none."""
    is_measured: bool = True
    """Whether its scores are those of runs."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """What the pre-training of a member cost on average, and how it ended."""

    name: str
    parameters: int
    steps: float
    tokens: float
    flops: float
    seconds: float
    loss: float
    accuracy: float
    objective: str
    """The objective that loss and right are of."""


@dataclass(frozen=True, slots=True)
class RecipeDifference:
    """How the recipe of a member differs from the first one's: places, with both sides."""

    name: str
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """Everything on the page."""

    title: str
    description: Sequence[str]
    tasks: Mapping[str, str]
    """Every task with the name of its score."""
    rows: Sequence[MemberRow]
    costs: Sequence[CostRow]
    panels: Sequence[ChartPanel]
    reference: str
    differences: Sequence[RecipeDifference]


def compare_page(report: ComparisonReport) -> str:
    """The whole page."""
    head = tag("h1", "", text(report.title), tag("small", "", text("对比")))
    parts = [tag("header", "", head, *(tag("p", "soft", text(line)) for line in report.description))]
    if report.tasks:
        parts.append(_section("scores", "得分", _scores(report)))
    if report.costs:
        parts.append(_section("cost", "代价", table(_COSTS, map(_cost, report.costs))))
    for panel in report.panels:
        parts.append(_section(panel.english, panel.chinese, panel_legend(panel), draw_panel(panel)))
    for one in report.differences:
        rows = ([_cell(text(word)) for word in place] for place in one.changes)
        parts.append(
            _section(
                f"{one.name} against {report.reference}", "配方差异", table(("", report.reference, one.name), rows)
            )
        )
    footer = tag("footer", "", text("made by unmask compare; ± is the standard deviation over seeds, n their number"))
    return page(f"compared: {report.title}", tag("main", "run", *parts, footer), ("walk.css", "run.css"), "run.js")


def _scores(told: ComparisonReport) -> Html:
    columns = ("member", *(f"{task} ({score})" for task, score in told.tasks.items()), "mean", "n")
    return table(columns, (_row(row, told.tasks) for row in told.rows))


def _row(row: MemberRow, tasks: Mapping[str, str]) -> list[Html]:
    name = Html("".join([*map(_swatch, row.color), tag("b", "", text(row.name))]))
    cells = [text(format_mean_std(row.scores.get(task, ()))) for task in tasks]
    mean = text(f"{100 * row.mean:.1f}" if math.isfinite(row.mean) else "")
    count = min((len(row.scores.get(task, ())) for task in tasks), default=0)
    return [_cell(cell) for cell in (name, *cells, mean, text(count if row.is_measured else ""))]


def _cost(row: CostRow) -> list[Html]:
    words = (
        format_count(row.parameters),
        format_count(row.steps),
        format_count(row.tokens),
        f"{row.flops:.3g}",
        format_duration(row.seconds),
        format_number(row.loss),
        format_percent(row.accuracy),
    )
    return [
        _cell(tag("b", "", text(row.name))),
        *(_cell(text(word)) for word in words),
        _cell(span("soft", row.objective)),
    ]


def _section(english: str, chinese: str, *content: Html) -> Html:
    name = tag("span", "", text(english), tag("small", "", text(chinese)))
    return tag("section", "", tag("h2", "", name), tag("div", "", *content))


def _cell(content: Html) -> Html:
    return tag("td", "", content)


def _swatch(number: int) -> Html:
    dashed = " dashed" if number >= NUM_COLORS else ""
    return tag("i", f"key line c{number % NUM_COLORS}{dashed}")
