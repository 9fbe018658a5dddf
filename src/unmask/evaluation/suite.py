"""A suite: a folder of tasks, each tuned with several seeds, from what a network knows and from nothing.

What arrives: tasks, and what is wished for. What leaves: the runs that are to be made, and afterwards
one line of figures for each task.
What never happens here: a run. Each is the command `unmask finetune`, which another process works off.
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
    """One run: a task, where its weights come from, and a seed."""

    task: SuiteTask
    start_from: StartFrom
    seed: int

    @property
    def folder_name(self) -> str:
        """Where it lies in the folder of the suite."""
        side = "scratch" if self.start_from is StartFrom.SCRATCH else "tuned"
        return f"runs/{self.task.name}/{side}-{self.seed}"

    def command_args(self, model: Path, out: Path, shared: Sequence[str]) -> list[str]:
        """The command; what the task itself says comes last and holds."""
        task = self.task
        files = ["--train-file", str(task.train), "--dev-file", str(task.dev), "--out", str(out / self.folder_name)]
        scratch = ["--from-scratch"] if self.start_from is StartFrom.SCRATCH else []
        return ["finetune", str(model), *files, "--seed", str(self.seed), *scratch, *shared, *task.option_args()]


def check_readable(tasks: Iterable[SuiteTask]) -> None:
    """Read every task as a tune would, so that a mistake in a file shows before anything is trained."""
    for task in tasks:
        load_task_data(task.train, task.dev, _task_options(task.name, task.options))


def _task_options(name: str, said: Mapping[str, str]) -> TaskOptions:
    """What the settings of a suite say about a task beyond its files."""
    try:
        wish = TaskOptions(
            task_type=parse_task_type(said.get("task_type", "")),
            columns=ColumnChoice.parse(said.get("text_columns", ""), said.get("label_column", "")),
        )
        return override_many(wish, [(key, said[key]) for key in ("pooling", "crf") if key in said])
    except (InputError, RecipeError) as error:
        raise InputError(f"{SETTINGS_FILE}: [{name}]: {error}") from error


@dataclass(frozen=True, slots=True)
class TaskScores:
    """What a task came to: the scores of each side, seed by seed."""

    task: str
    task_type: str
    metric: str
    pretrained: tuple[float, ...]
    scratch: tuple[float, ...]
    baseline: float
    """What a guess is worth that knows nothing of the text; not a number where there is no such."""

    @property
    def gain(self) -> float:
        """How much better the pre-trained network is on average."""
        return mean(self.pretrained) - mean(self.scratch)

    @property
    def is_separated(self) -> bool:
        """Whether the worst seed of the pre-trained network beats the best from scratch."""
        return bool(self.pretrained and self.scratch) and min(self.pretrained) > max(self.scratch)


def plan_runs(tasks: Iterable[SuiteTask], seeds: int, scratch: bool) -> tuple[SuiteRun, ...]:
    """Every run that is to be made; seeds outermost, so that a first table is there early."""
    tasks, starts = tuple(tasks), (StartFrom.PRETRAINED, StartFrom.SCRATCH) if scratch else (StartFrom.PRETRAINED,)
    return tuple(SuiteRun(task, start, seed) for seed in range(seeds) for task in tasks for start in starts)


def is_suite_run_finished(run: SuiteRun, out: Path) -> bool:
    """Whether a run has come to its end."""
    return is_run_finished(out / run.folder_name)


def describe(tasks: Sequence[SuiteTask], shared: Sequence[str], source: Mapping[str, str]) -> dict[str, Any]:
    """What the runs of a suite have in common, so that a folder never mixes two of them. Seeds may be added."""
    files = {
        task.name: {"train": digest_file(task.train), "dev": digest_file(task.dev), "options": dict(task.options)}
        for task in tasks
    }
    return {"kind": "suite", "source": dict(source), "options": list(shared), "tasks": files}


def collect_scores(runs: Iterable[SuiteRun], out: Path) -> tuple[TaskScores, ...]:
    """One line for each task, from the runs that are finished."""
    held: dict[str, list[tuple[SuiteRun, Mapping[str, Any]]]] = {}
    for attempt in runs:
        if is_suite_run_finished(attempt, out):
            held.setdefault(attempt.task.name, []).append((attempt, read_task(out / attempt.folder_name)))
    return tuple(_task_scores(found) for _, found in sorted(held.items()))


def mean(scores: Sequence[float]) -> float:
    """The mean; not a number where there is nothing."""
    return statistics.fmean(scores) if scores else math.nan


def _task_scores(found: Sequence[tuple[SuiteRun, Mapping[str, Any]]]) -> TaskScores:
    attempt, said = found[0]
    metrics = said["metrics"]
    metric = attempt.task.metric or said["metric"]
    if metric not in metrics:
        raise InputError(f"{SETTINGS_FILE}: {attempt.task.name} has no score {metric!r}. It has: {', '.join(metrics)}.")
    sides: dict[StartFrom, list[float]] = {StartFrom.PRETRAINED: [], StartFrom.SCRATCH: []}
    for one, told in found:
        sides[one.start_from].append(_or_nan(told["metrics"][metric]))
    chance = _or_nan(said.get("baseline", {}).get(metric))
    return TaskScores(
        attempt.task.name,
        said["task_type"],
        metric,
        tuple(sides[StartFrom.PRETRAINED]),
        tuple(sides[StartFrom.SCRATCH]),
        chance,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
