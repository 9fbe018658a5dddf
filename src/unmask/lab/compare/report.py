"""The content of the comparison page: rows of scores and costs, curves, and the differences of the recipes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from unmask.core.codec import difference
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.evaluation.suite import mean
from unmask.lab.compare.results import MemberStanding, Results
from unmask.lab.compare.spec import ComparisonSpec
from unmask.reports.charts.curves import ChartLine, ChartPanel, ChartPoint
from unmask.reports.pages.compare import ComparisonReport, CostRow, MemberRow, RecipeDifference
from unmask.reports.text.number_format import NumberFormat
from unmask.train.flops_meter import ComputeSpent

_SAME = frozenset({"name", "year", "paper", "title", "summary", "parent", "tokenizer", "model_type"})
"""Fields of a recipe that do not matter to a comparison: labels, and a vocabulary that all members share."""


def comparison_report(results: Results, spec: ComparisonSpec) -> ComparisonReport:
    """Everything that the page shows."""
    names = [standing.name for standing in results.standings]
    budget = ", ".join(f"{value:,g} {name}" for name, value in spec.budget.items() if value is not None)
    seeds = f"{spec.seeds} seed{'s' * (spec.seeds != 1)}"
    return ComparisonReport(
        title=" · ".join(names),
        description=(f"{budget} each, up to {seeds}.", spec.describe_vocabulary()),
        tasks={task.name: METRIC_NAMES.get(task.metric, task.metric) for task in results.tasks},
        rows=member_rows(results),
        costs=cost_rows(results),
        panels=tuple(_panels(results)),
        reference=names[0],
        differences=tuple(_recipe_differences(spec)),
    )


def member_rows(results: Results) -> list[MemberRow]:
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


def cost_rows(results: Results) -> list[CostRow]:
    """The costs of every member with a finished network."""
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
