"""A suite: a folder of tasks, each tuned with several seeds, from what a network knows and from nothing.

What arrives: tasks, and what is wished for. What leaves: the runs that are to be made, and afterwards
one line of figures for each task.
What never happens here: a run. Each is the command `unmask tune`, which another process works off.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.codec import override_all
from unmask.errors import InputError, RecipeError
from unmask.evaluate.suite_file import SETTINGS, SuiteTask
from unmask.shards.files import digest_of
from unmask.train.folder import finished
from unmask.tune.fields import Choice
from unmask.tune.job import read_job
from unmask.tune.saved import read_task
from unmask.tune.start import Origin
from unmask.tune.wish import Wish, kind_named


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: a task, where its weights come from, and a seed."""

    task: SuiteTask
    start: Origin
    seed: int

    @property
    def place(self) -> str:
        """Where it lies in the folder of the suite."""
        side = "scratch" if self.start is Origin.SCRATCH else "tuned"
        return f"runs/{self.task.name}/{side}-{self.seed}"

    def words(self, model: Path, out: Path, shared: Sequence[str]) -> list[str]:
        """The command; what the task itself says comes last and holds."""
        task = self.task
        files = ["--task", str(task.train), "--dev", str(task.dev), "--out", str(out / self.place)]
        scratch = ["--from-scratch"] if self.start is Origin.SCRATCH else []
        return ["tune", str(model), *files, "--seed", str(self.seed), *scratch, *shared, *task.words()]


def check_readable(tasks: Iterable[SuiteTask]) -> None:
    """Read every task as a tune would, so that a mistake in a file shows before anything is trained."""
    for task in tasks:
        read_job(task.train, task.dev, _wish(task.name, task.options))


def _wish(name: str, said: Mapping[str, str]) -> Wish:
    """What the settings of a suite say about a task beyond its files."""
    try:
        wish = Wish(
            kind=kind_named(said.get("kind", "")), choice=Choice.named(said.get("fields", ""), said.get("label", ""))
        )
        return override_all(wish, [(key, said[key]) for key in ("read", "crf") if key in said])
    except (InputError, RecipeError) as error:
        raise InputError(f"{SETTINGS}: [{name}]: {error}") from error


@dataclass(frozen=True, slots=True)
class Figures:
    """What a task came to: the scores of each side, seed by seed."""

    task: str
    kind: str
    metric: str
    tuned: tuple[float, ...]
    scratch: tuple[float, ...]
    chance: float
    """What a guess is worth that knows nothing of the text; not a number where there is no such."""

    @property
    def gain(self) -> float:
        """How much better the pre-trained network is on average."""
        return mean(self.tuned) - mean(self.scratch)

    @property
    def apart(self) -> bool:
        """Whether the worst seed of the pre-trained network beats the best from scratch."""
        return bool(self.tuned and self.scratch) and min(self.tuned) > max(self.scratch)


def plan(tasks: Iterable[SuiteTask], seeds: int, scratch: bool) -> tuple[Attempt, ...]:
    """Every run that is to be made; seeds outermost, so that a first table is there early."""
    tasks, starts = tuple(tasks), (Origin.PRETRAINED, Origin.SCRATCH) if scratch else (Origin.PRETRAINED,)
    return tuple(Attempt(task, start, seed) for seed in range(seeds) for task in tasks for start in starts)


def done(attempt: Attempt, out: Path) -> bool:
    """Whether a run has come to its end."""
    return finished(out / attempt.place)


def describe(tasks: Sequence[SuiteTask], shared: Sequence[str], source: Mapping[str, str]) -> dict[str, Any]:
    """What the runs of a suite have in common, so that a folder never mixes two of them. Seeds may be added."""
    files = {
        task.name: {"train": digest_of(task.train), "dev": digest_of(task.dev), "options": dict(task.options)}
        for task in tasks
    }
    return {"kind": "suite", "source": dict(source), "options": list(shared), "tasks": files}


def figures(attempts: Iterable[Attempt], out: Path) -> tuple[Figures, ...]:
    """One line for each task, from the runs that are finished."""
    held: dict[str, list[tuple[Attempt, Mapping[str, Any]]]] = {}
    for attempt in attempts:
        if done(attempt, out):
            held.setdefault(attempt.task.name, []).append((attempt, read_task(out / attempt.place)))
    return tuple(_figures(found) for _, found in sorted(held.items()))


def mean(scores: Sequence[float]) -> float:
    """The mean; not a number where there is nothing."""
    return statistics.fmean(scores) if scores else math.nan


def _figures(found: Sequence[tuple[Attempt, Mapping[str, Any]]]) -> Figures:
    attempt, said = found[0]
    metrics = said["metrics"]
    metric = attempt.task.metric or said["metric"]
    if metric not in metrics:
        raise InputError(f"{SETTINGS}: {attempt.task.name} has no score {metric!r}. It has: {', '.join(metrics)}.")
    sides: dict[Origin, list[float]] = {Origin.PRETRAINED: [], Origin.SCRATCH: []}
    for one, told in found:
        sides[one.start].append(_number(told["metrics"][metric]))
    chance = _number(said.get("chance", {}).get(metric))
    return Figures(
        attempt.task.name, said["kind"], metric, tuple(sides[Origin.PRETRAINED]), tuple(sides[Origin.SCRATCH]), chance
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
