"""Tables of scores in the terminal: of one task, of several tasks, of a suite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from unmask.cli.ui.console import console, print_line
from unmask.evaluation.metrics.classification import METRIC_NAMES, format_scores
from unmask.evaluation.suite import TaskScores, mean
from unmask.finetuning.artifact import PREDICTIONS_FILE, read_task
from unmask.finetuning.multitask.artifact import ENCODER_FOLDER
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.finetuning.task_data import TaskData
from unmask.finetuning.tasks.protocol import TaskType
from unmask.reports.text.number_format import format_mean_std
from unmask.train.rundir.folder import is_finished


def print_scores(out: Path, job: TaskData) -> None:
    """Print the scores of a finished folder."""
    found = read_task(out)
    values = {name: float("nan") if value is None else value for name, value in found["metrics"].items()}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"{len(job.dev):,} row{'' if len(job.dev) == 1 else 's'} judged by")
    table.add_column("score", justify="right")
    for name, value in format_scores(values, getattr(job.task, "labels", ())):
        table.add_row(name, value)
    console().print(table)
    guess = found["baseline"].get(found["metric"])
    if guess is not None:
        who = "The source, copied," if found["task_type"] == TaskType.GENERATION else "A guess without the text"
        print_line(f"{who} would have: {METRIC_NAMES[found['metric']]} {guess:.4f}.")
    parameters = found["parameters"]
    share = parameters["trained"] / parameters["all"]
    print_line(f"{parameters['trained']:,} of {parameters['all']:,} parameters were trained ({share:.2%}).")
    print_line(f"The fine-tuned model is in {out}, its predictions in {out / PREDICTIONS_FILE}.")


def print_multitask_scores(out: Path, tasks: Sequence[TaskEntry], each: Path) -> None:
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
    print_line(f"The encoder is in {out / ENCODER_FOLDER}, and each task in its own folder: {out / tasks[0].name}.")


def _line(folder: Path, alone: Path, task: TaskEntry) -> tuple[list[str], list[float]]:
    """The facts about a task, and its score together and then alone."""
    said = read_task(folder)
    metric, rows = said["metric"], said["rows"]
    facts = [task.name, said["task_type"], METRIC_NAMES[metric], f"{rows['train']:,}", f"{rows['dev']:,}"]
    found = [said, *([read_task(alone)] if is_finished(alone) else [])]
    scores = [one["metrics"][metric] for one in found]
    return facts, [math.nan if score is None else float(score) for score in scores]


def _format_score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "none"


def print_suite(found: Sequence[TaskScores]) -> None:
    """The table of a suite."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("score")
    for name in ("pre-trained", "from scratch", "gain", "chance"):
        table.add_column(name, justify="right")
    for one in found:
        gain = f"{100 * one.gain:+.1f}{'' if one.is_separated else ' ~'}" if one.scratch else ""
        sides = (format_mean_std(one.pretrained), format_mean_std(one.scratch))
        table.add_row(one.task, METRIC_NAMES.get(one.metric, one.metric), *sides, gain, _to_percent(one.baseline))
    if len(found) > 1:
        table.add_row(
            "mean", "", *(_to_percent(mean([mean(side) for side in sides])) for sides in _sides(found)), "", ""
        )
    console().print(table)
    if any(one.scratch and not one.is_separated for one in found):
        print_line("~ the seeds of both sides overlap: this difference may be chance.")


def _sides(found: Sequence[TaskScores]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [one.pretrained for one in found], [one.scratch for one in found]


def _to_percent(score: float) -> str:
    return f"{100 * score:.1f}" if math.isfinite(score) else ""
