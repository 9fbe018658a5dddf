"""A comparison in the terminal: its expected cost, and tables that fit into 80 columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from unmask.cli.ui.console import console, print_facts, print_line
from unmask.cli.ui.progress import TerminalReporter
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.lab.compare.arms import ArmRun
from unmask.lab.compare.cost import CostForecast, num_finetunes
from unmask.lab.compare.report import cost_rows, member_rows
from unmask.lab.compare.results import Results, TaskFacts
from unmask.lab.compare.run import PAGE, RESULTS, ComparisonListener
from unmask.lab.compare.spec import ComparisonSpec
from unmask.reports.pages.compare import CostRow, MemberRow
from unmask.reports.text.number_format import format_count, format_duration, format_mean_std

_TASKS = 4
"""Most tasks in one table."""
_NAME, _SCORE = 16, 13
"""Most letters of a member's and of a task's name."""


class TerminalComparisonListener(TerminalReporter, ComparisonListener):
    """Shows a comparison in the terminal."""

    def forecast(self, spec: ComparisonSpec, costs: CostForecast, missing: Sequence[ArmRun], finetunes: int) -> None:
        """Print the expected cost."""
        print_forecast(spec, costs, missing, finetunes)

    def finished(self, results: Results, out: Path) -> None:
        """Print the tables."""
        print_comparison(results)
        print_line(f"The figures are in {out / RESULTS} and {out / PAGE}, each run in {out / 'members'}.")


def print_forecast(spec: ComparisonSpec, costs: CostForecast, missing: Sequence[ArmRun], finetunes: int) -> None:
    """How many runs are still to be made, and how long they may take."""
    every = sum(num_finetunes(spec, entry) for entry in spec.entries)
    measured = {entry.arm.name: costs.network_seconds[entry.arm.name] for entry in missing}
    facts = [("networks", f"{len(missing)} of {len(spec.entries)} to pre-train")]
    facts += [("", f"{name}: about {format_duration(seconds)} each") for name, seconds in measured.items()]
    facts += [("fine-tunings", f"{finetunes} of {every} (tasks: {', '.join(task.name for task in spec.tasks)})")]
    if measured:
        seconds = sum(costs.network_seconds[entry.arm.name] for entry in missing) + finetunes * costs.finetune_seconds
        facts += [("time", f"about {format_duration(seconds)}, one after another")]
    print_facts(facts)


def print_comparison(results: Results) -> None:
    """Both tables, of whatever is finished."""
    rows, costs = member_rows(results), cost_rows(results)
    if not costs:
        print_line("No network is finished, so there is no table yet.")
        return
    for at in range(0, len(results.tasks), _TASKS):
        some = results.tasks[at : at + _TASKS]
        console().print(_scores(rows, some, last=at + _TASKS >= len(results.tasks)))
    print_line("Hundredths, mean and standard deviation over n seeds; guess: what is right without reading the text.")
    console().print(_costs(costs))
    print_line("Time, loss and right answers (held-out text) are means over seeds; FLOPs are those of training.")


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
        ended = (format_duration(row.seconds), f"{row.loss:.3f}", f"{100 * row.accuracy:.1f}", row.objective)
        table.add_row(row.name, *counts, *ended)
    return table
