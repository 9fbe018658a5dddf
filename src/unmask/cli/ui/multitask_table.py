"""What a person sees of several tasks: one line each, with the score to compare by.

What arrives: finished folders. What leaves: a table. What never happens here: a score that is not in a folder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from unmask.cli.ui.console import console, print_line
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.finetuning.artifact import read_task
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.train.rundir.folder import is_finished


def print_scores(out: Path, tasks: Sequence[TaskEntry], each: Path) -> None:
    """Print the scores of all tasks, together and, where that was done, then alone."""
    shown = [_line(out / task.name, each / task.name, task) for task in tasks]
    columns = min(len(values) for _, values in shown)  # a stop may have left some tasks without the second
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("task", "kind", "score"):
        table.add_column(name)
    for name in ("rows", "judged by", *("together", "then alone")[:columns]):
        table.add_column(name, justify="right")
    for facts, values in shown:
        table.add_row(*facts, *map(_format_score, values[:columns]))
    if len(tasks) > 1:
        means = [sum(values[place] for _, values in shown) / len(shown) for place in range(columns)]
        table.add_row("mean", "", "", "", "", *map(_format_score, means))
    console().print(table)
    print_line(f"The trunk is in {out / 'trunk'}, and each task in its own folder: {out / tasks[0].name}.")


def _line(folder: Path, alone: Path, task: TaskEntry) -> tuple[list[str], list[float]]:
    """The facts about a task, and its score together and then alone."""
    said = read_task(folder)
    metric, rows = said["metric"], said["rows"]
    facts = [task.name, said["kind"], METRIC_NAMES[metric], f"{rows['learned']:,}", f"{rows['judged']:,}"]
    found = [said, *([read_task(alone)] if is_finished(alone) else [])]
    scores = [one["metrics"][metric] for one in found]
    return facts, [math.nan if score is None else float(score) for score in scores]


def _format_score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "none"
