"""What a person reads of a comparison: tables that fit into 80 columns, and the values of the page.

What arrives: results. What leaves: lines on the screen, and a `Compared`.
What never happens here: a mean without its spread and its number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from unmask.cli.ui.console import console, print_line
from unmask.cli.ui.progress import duration
from unmask.core.codec import difference
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.evaluation.suite import mean
from unmask.lab.compare.results import MemberStanding, Results, TaskFacts
from unmask.lab.compare.spec import ComparisonSpec
from unmask.reports.charts.metric_vs_compute import ChartLine, ChartPanel, ChartPoint
from unmask.reports.pages.compare import ComparisonReport, CostRow, MemberRow, RecipeDifference
from unmask.reports.text.number_format import NumberFormat, format_count
from unmask.reports.text.score_format import format_mean_std
from unmask.train.flops_meter import ComputeSpent

_TASKS = 4
"""Tasks beside each other, so that a table fits into 80 columns."""
_NAME, _SCORE = 16, 13
"""Most letters of a member's and of a task's name."""
_SAME = frozenset({"name", "year", "paper", "title", "changed", "parent", "tokenizer", "dialect"})
"""Places of a recipe that say nothing about what was compared: labels, and a vocabulary that all members share."""


def print_comparison(results: Results) -> None:
    """Both tables, of whatever is finished."""
    rows, costs = _rows(results), _cost_rows(results)
    if not costs:
        print_line("No network is finished, so there is no table yet.")
        return
    for at in range(0, len(results.tasks), _TASKS):
        some = results.tasks[at : at + _TASKS]
        console().print(_scores(rows, some, last=at + _TASKS >= len(results.tasks)))
    print_line("Hundredths, mean and standard deviation over n seeds; guess: what is right without reading the text.")
    console().print(_costs(costs))
    print_line("Time, loss and right answers (held-out text) are means over seeds; FLOPs are those of training.")


def comparison_report(results: Results, spec: ComparisonSpec) -> ComparisonReport:
    """Everything that the page shows."""
    names = [standing.name for standing in results.standings]
    budget = ", ".join(f"{value:,g} {name}" for name, value in spec.budget.items() if value is not None)
    seeds = f"{spec.seeds} seed{'s' * (spec.seeds != 1)}"
    return ComparisonReport(
        title=" · ".join(names),
        description=(f"{budget} each, up to {seeds}.", spec.describe_vocabulary()),
        tasks={task.name: METRIC_NAMES.get(task.metric, task.metric) for task in results.tasks},
        rows=_rows(results),
        costs=_cost_rows(results),
        panels=tuple(_panels(results)),
        reference=names[0],
        differences=tuple(_recipe_differences(spec)),
    )


def _rows(results: Results) -> list[MemberRow]:
    """The members, then what has learned nothing, then what has read nothing."""
    tasks = [task.name for task in results.tasks]
    rows = []
    for number, one in enumerate(results.standings):
        scores = {task: one.scores(task) for task in tasks}
        rows.append(MemberRow(one.name, scores, results.mean_over_tasks(scores), (number,)))
    scratched = [one for one in results.standings if any(map(one.scratch, tasks))]
    for one in scratched:
        name = "from scratch" if len(scratched) == 1 else f"{one.name}, scratch"
        scores = {task: one.scratch(task) for task in tasks}
        rows.append(MemberRow(name, scores, results.mean_over_tasks(scores)))
    guess = {task.name: (task.baseline,) for task in results.tasks if math.isfinite(task.baseline)}
    return [*rows, MemberRow("guess", guess, results.mean_over_tasks(guess), is_measured=False)]


def _scores(rows: Sequence[MemberRow], tasks: Sequence[TaskFacts], last: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("member", max_width=_NAME, overflow="fold")
    table.add_column("n", justify="right")
    for task in tasks:
        heading = f"{task.name}\n{METRIC_NAMES.get(task.metric, task.metric)}"
        table.add_column(heading, justify="right", max_width=_SCORE, overflow="fold")
    if last:
        table.add_column("mean", justify="right")
    for row in rows:
        count = min(len(row.scores.get(task.name, ())) for task in tasks)
        mean_of = [f"{100 * row.mean:.1f}" if math.isfinite(row.mean) else ""] if last else []
        cells = [format_mean_std(row.scores.get(task.name, ())) for task in tasks]
        table.add_row(row.name, str(count) if row.is_measured else "", *cells, *mean_of)
    return table


def _costs(rows: Sequence[CostRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("member", max_width=_NAME, overflow="fold")
    for name in ("weights", "steps", "tokens", "FLOPs", "time", "loss", "right", "of"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        counts = (
            format_count(row.parameters),
            format_count(row.steps),
            format_count(row.tokens),
            f"{row.flops:.2e}".replace("e+", "e"),
        )
        ended = (duration(row.seconds), f"{row.loss:.3f}", f"{100 * row.accuracy:.1f}", row.objective)
        table.add_row(row.name, *counts, *ended)
    return table


def _cost_rows(results: Results) -> list[CostRow]:
    return [_cost_row(one) for one in results.standings if one.runs]


def _cost_row(standing: MemberStanding) -> CostRow:
    runs = standing.runs
    ends = [run.curve.last for run in runs]
    spent = [end.spent for end in ends]
    return CostRow(
        standing.name,
        runs[0].num_parameters,
        mean([one.step for one in spent]),
        mean([one.tokens for one in spent]),
        mean([one.flops for one in spent]),
        mean([one.seconds for one in spent]),
        mean([end.loss for end in ends]),
        mean([end.accuracy for end in ends]),
        runs[0].curve.objective,
    )


def _panels(results: Results) -> Iterator[ChartPanel]:
    """Held-out loss and right answers, then every task that was tuned at several points."""
    runs = [(number, one.name, run) for number, one in enumerate(results.standings) for run in one.runs]
    if not runs:
        return
    said = "hidden tokens of held-out text"
    named = [
        (at, name if run.curve.objective == "mlm" else f"{name} ({run.curve.objective})", run) for at, name, run in runs
    ]
    losses = (
        ChartLine(name, at, _chart_points((one.spent, one.loss) for one in run.curve.points)) for at, name, run in named
    )
    yield ChartPanel("loss", "损失", f"{said}, in nats", NumberFormat.PLAIN, tuple(losses))
    rights = (
        ChartLine(name, at, _chart_points((one.spent, one.accuracy) for one in run.curve.points))
        for at, name, run in named
    )
    yield ChartPanel("right answers", "准确率", said, NumberFormat.SHARE, tuple(rights))
    for task in results.tasks:
        traces = []
        for at, name, run in runs:
            points = [(one.spent, one.scores[task.name]) for one in run.points if task.name in one.scores]
            ended = [(run.curve.last.spent, run.scores[task.name])] if task.name in run.scores else []
            if points:
                traces.append(ChartLine(name, at, _chart_points([*points, *ended])))
        if traces:
            yield ChartPanel(
                task.name, "任务得分", METRIC_NAMES.get(task.metric, task.metric), NumberFormat.SHARE, tuple(traces)
            )


def _chart_points(found: Iterable[tuple[ComputeSpent, float]]) -> tuple[ChartPoint, ...]:
    return tuple(ChartPoint(one.tokens, one.seconds, one.flops, value) for one, value in found)


def _recipe_differences(contest: ComparisonSpec) -> Iterator[RecipeDifference]:
    first, *others = ((name, meter.recipe) for name, meter in contest.meters.items())
    for name, recipe in others:
        found = difference(first[1], recipe)
        yield RecipeDifference(name, tuple((one.path, one.left, one.right) for one in found if one.path not in _SAME))
