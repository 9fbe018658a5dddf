"""Runs and scores of a suite: every task is fine-tuned with several seeds, pre-trained and from scratch.

Each run is an `unmask finetune` command, executed by another process.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.core.codec import override_many
from unmask.core.errors import InputError, RecipeError
from unmask.core.io.atomic import digest_file
from unmask.evaluation.suite_file import SETTINGS_FILE, SuiteTask
from unmask.finetuning.artifact import read_task
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.task_options import TaskOptions, parse_task_type
from unmask.train.rundir.folder import is_finished as is_run_finished


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run: a task, its initial weights and a seed."""

    task: SuiteTask
    start_from: StartFrom
    seed: int

    @property
    def folder_name(self) -> str:
        """The folder of the run inside that of the suite."""
        side = "scratch" if self.start_from is StartFrom.SCRATCH else "tuned"
        return f"runs/{self.task.name}/{side}-{self.seed}"

    def command_args(self, model: Path, out: Path, shared: Sequence[str]) -> list[str]:
        """The arguments of the command; options of the task come last and take precedence."""
        task = self.task
        files = ["--train-file", str(task.train), "--dev-file", str(task.dev), "--out", str(out / self.folder_name)]
        scratch = ["--from-scratch"] if self.start_from is StartFrom.SCRATCH else []
        return ["finetune", str(model), *files, "--seed", str(self.seed), *scratch, *shared, *task.option_args()]


def check_readable(tasks: Iterable[SuiteTask]) -> None:
    """Read every task, so that a mistake in a file is found before anything is trained."""
    for task in tasks:
        load_task_data(task.train, task.dev, _task_options(task.name, task.options))


def _task_options(name: str, settings: Mapping[str, str]) -> TaskOptions:
    """Task options from the settings of a suite."""
    try:
        options = TaskOptions(
            task_type=parse_task_type(settings.get("task_type", "")),
            columns=ColumnChoice.parse(settings.get("text_columns", ""), settings.get("label_column", "")),
        )
        return override_many(options, [(key, settings[key]) for key in ("pooling", "crf") if key in settings])
    except (InputError, RecipeError) as error:
        raise InputError(f"{SETTINGS_FILE}: [{name}]: {error}") from error


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of a task, seed by seed."""

    task: str
    task_type: str
    metric: str
    pretrained: tuple[float, ...]
    scratch: tuple[float, ...]
    baseline: float
    """The score of the trivial baseline; NaN if there is none."""

    @property
    def gain(self) -> float:
        """The mean gain of pre-training."""
        return mean(self.pretrained) - mean(self.scratch)

    @property
    def is_separated(self) -> bool:
        """Whether the worst pre-trained seed is better than the best from scratch."""
        return bool(self.pretrained and self.scratch) and min(self.pretrained) > max(self.scratch)


def plan_runs(tasks: Iterable[SuiteTask], seeds: int, scratch: bool) -> tuple[SuiteRun, ...]:
    """All runs, seeds outermost, so that a first table is available early."""
    tasks, starts = tuple(tasks), (StartFrom.PRETRAINED, StartFrom.SCRATCH) if scratch else (StartFrom.PRETRAINED,)
    return tuple(SuiteRun(task, start, seed) for seed in range(seeds) for task in tasks for start in starts)


def is_suite_run_finished(run: SuiteRun, out: Path) -> bool:
    """Whether a run is finished."""
    return is_run_finished(out / run.folder_name)


def describe(tasks: Sequence[SuiteTask], shared: Sequence[str], source: Mapping[str, str]) -> dict[str, Any]:
    """The description of a suite, which must not change between calls; seeds may be added."""
    files = {
        task.name: {"train": digest_file(task.train), "dev": digest_file(task.dev), "options": dict(task.options)}
        for task in tasks
    }
    return {"kind": "suite", "source": dict(source), "options": list(shared), "tasks": files}


def collect_scores(runs: Iterable[SuiteRun], out: Path) -> tuple[TaskScores, ...]:
    """The scores of each task, from finished runs."""
    finished: dict[str, list[tuple[SuiteRun, Mapping[str, Any]]]] = {}
    for run in runs:
        if is_suite_run_finished(run, out):
            finished.setdefault(run.task.name, []).append((run, read_task(out / run.folder_name)))
    return tuple(_task_scores(found) for _, found in sorted(finished.items()))


def mean(scores: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return statistics.fmean(scores) if scores else math.nan


def _task_scores(found: Sequence[tuple[SuiteRun, Mapping[str, Any]]]) -> TaskScores:
    run, saved = found[0]
    metrics = saved["metrics"]
    metric = run.task.metric or saved["metric"]
    if metric not in metrics:
        raise InputError(f"{SETTINGS_FILE}: {run.task.name} has no score {metric!r}. It has: {', '.join(metrics)}.")
    sides: dict[StartFrom, list[float]] = {StartFrom.PRETRAINED: [], StartFrom.SCRATCH: []}
    for one, task_json in found:
        sides[one.start_from].append(_or_nan(task_json["metrics"][metric]))
    baseline = _or_nan(saved.get("baseline", {}).get(metric))
    return TaskScores(
        run.task.name,
        saved["task_type"],
        metric,
        tuple(sides[StartFrom.PRETRAINED]),
        tuple(sides[StartFrom.SCRATCH]),
        baseline,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
