"""What a person reads of a comparison: tables that fit into 80 columns, and the values of the page.

What arrives: results. What leaves: lines on the screen, and a `Compared`.
What never happens here: a mean without its spread and its number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from unmask.cli.compare_parts import Contest
from unmask.cli.progress import duration
from unmask.cli.terminal import console, say
from unmask.codec import difference
from unmask.evaluate.metrics import NAMES
from unmask.evaluate.suite import mean
from unmask.lab.flops import Spent
from unmask.lab.results import Results, Standing, TaskFacts
from unmask.report.compare_charts import Panel, Spot, Trace
from unmask.report.compare_page import Apart, Compared, CostRow, MemberRow
from unmask.report.figures import Unit, short
from unmask.report.scores import scored

_TASKS = 4
"""Tasks beside each other, so that a table fits into 80 columns."""
_NAME, _SCORE = 16, 13
"""Most letters of a member's and of a task's name."""
_SAME = frozenset({"name", "year", "paper", "title", "changed", "parent", "tokenizer", "dialect"})
"""Places of a recipe that say nothing about what was compared: labels, and a vocabulary that all members share."""


def show(results: Results) -> None:
    """Both tables, of whatever is finished."""
    rows, costs = _rows(results), _cost_rows(results)
    if not costs:
        say("No network is finished, so there is no table yet.")
        return
    for at in range(0, len(results.tasks), _TASKS):
        some = results.tasks[at : at + _TASKS]
        console().print(_scores(rows, some, last=at + _TASKS >= len(results.tasks)))
    say("Hundredths, mean and standard deviation over n seeds; guess: what is right without reading the text.")
    console().print(_costs(costs))
    say("Time, loss and right answers (held-out text) are means over seeds; FLOPs are those of training.")


def told_page(results: Results, contest: Contest) -> Compared:
    """Everything that the page shows."""
    names = [standing.name for standing in results.standings]
    budget = ", ".join(f"{value:,g} {name}" for name, value in contest.budget.items() if value is not None)
    seeds = f"{contest.seeds} seed{'s' * (contest.seeds != 1)}"
    return Compared(
        title=" · ".join(names),
        about=(f"{budget} each, up to {seeds}.", contest.vocabulary()),
        tasks={task.name: NAMES.get(task.metric, task.metric) for task in results.tasks},
        rows=_rows(results),
        costs=_cost_rows(results),
        panels=tuple(_panels(results)),
        first=names[0],
        differs=tuple(_differs(contest)),
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
    guess = {task.name: (task.chance,) for task in results.tasks if math.isfinite(task.chance)}
    return [*rows, MemberRow("guess", guess, results.mean_over_tasks(guess), measured=False)]


def _scores(rows: Sequence[MemberRow], tasks: Sequence[TaskFacts], last: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("member", max_width=_NAME, overflow="fold")
    table.add_column("n", justify="right")
    for task in tasks:
        heading = f"{task.name}\n{NAMES.get(task.metric, task.metric)}"
        table.add_column(heading, justify="right", max_width=_SCORE, overflow="fold")
    if last:
        table.add_column("mean", justify="right")
    for row in rows:
        count = min(len(row.scores.get(task.name, ())) for task in tasks)
        mean_of = [f"{100 * row.mean:.1f}" if math.isfinite(row.mean) else ""] if last else []
        cells = [scored(row.scores.get(task.name, ())) for task in tasks]
        table.add_row(row.name, str(count) if row.measured else "", *cells, *mean_of)
    return table


def _costs(rows: Sequence[CostRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("member", max_width=_NAME, overflow="fold")
    for name in ("weights", "steps", "tokens", "FLOPs", "time", "loss", "right", "of"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        counts = (short(row.parameters), short(row.steps), short(row.tokens), f"{row.flops:.2e}".replace("e+", "e"))
        ended = (duration(row.seconds), f"{row.loss:.3f}", f"{100 * row.right:.1f}", row.objective)
        table.add_row(row.name, *counts, *ended)
    return table


def _cost_rows(results: Results) -> list[CostRow]:
    return [_cost_row(one) for one in results.standings if one.runs]


def _cost_row(standing: Standing) -> CostRow:
    runs = standing.runs
    ends = [run.course.last for run in runs]
    spent = [end.spent for end in ends]
    return CostRow(
        standing.name,
        runs[0].parameters,
        mean([one.step for one in spent]),
        mean([one.tokens for one in spent]),
        mean([one.flops for one in spent]),
        mean([one.seconds for one in spent]),
        mean([end.loss for end in ends]),
        mean([end.right for end in ends]),
        runs[0].course.objective,
    )


def _panels(results: Results) -> Iterator[Panel]:
    """Held-out loss and right answers, then every task that was tuned at several points."""
    runs = [(number, one.name, run) for number, one in enumerate(results.standings) for run in one.runs]
    if not runs:
        return
    said = "hidden tokens of held-out text"
    named = [
        (at, name if run.course.objective == "mlm" else f"{name} ({run.course.objective})", run)
        for at, name, run in runs
    ]
    losses = (Trace(name, at, _spots((one.spent, one.loss) for one in run.course.trials)) for at, name, run in named)
    yield Panel("loss", "损失", f"{said}, in nats", Unit.PLAIN, tuple(losses))
    rights = (Trace(name, at, _spots((one.spent, one.right) for one in run.course.trials)) for at, name, run in named)
    yield Panel("right answers", "准确率", said, Unit.SHARE, tuple(rights))
    for task in results.tasks:
        traces = []
        for at, name, run in runs:
            points = [(one.spent, one.scores[task.name]) for one in run.points if task.name in one.scores]
            ended = [(run.course.last.spent, run.scores[task.name])] if task.name in run.scores else []
            if points:
                traces.append(Trace(name, at, _spots([*points, *ended])))
        if traces:
            yield Panel(task.name, "任务得分", NAMES.get(task.metric, task.metric), Unit.SHARE, tuple(traces))


def _spots(found: Iterable[tuple[Spent, float]]) -> tuple[Spot, ...]:
    return tuple(Spot(one.tokens, one.seconds, one.flops, value) for one, value in found)


def _differs(contest: Contest) -> Iterator[Apart]:
    first, *others = ((name, meter.recipe) for name, meter in contest.meters.items())
    for name, recipe in others:
        found = difference(first[1], recipe)
        yield Apart(name, tuple((one.path, one.left, one.right) for one in found if one.path not in _SAME))
