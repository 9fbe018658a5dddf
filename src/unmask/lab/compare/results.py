"""Results of a comparison, read from the folders of its finished runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask.evaluation.suite import TaskScores, collect_scores, mean
from unmask.evaluation.suite_file import SuiteTask
from unmask.lab.compare.arms import NETWORK, Arm, ArmRun
from unmask.lab.compare.curves import EvalCurve, point_steps, read_eval_curve
from unmask.train.flops_meter import ComputeSpent, FlopsMeter
from unmask.train.rundir.folder import is_finished, read_run
from unmask.train.rundir.run_writer import RECORD, read_record


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A network at one point of its training: compute spent, and scores by task."""

    spent: ComputeSpent
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """One network: its pre-training curve and its scores. Unfinished tasks are missing."""

    seed: int
    num_parameters: int
    curve: EvalCurve
    scores: Mapping[str, float]
    scratch: Mapping[str, float]
    points: tuple[CurvePoint, ...] = ()
    """Intermediate points in order, without the last."""


@dataclass(frozen=True, slots=True)
class MemberStanding:
    """One member: all of its finished runs."""

    name: str
    runs: tuple[NetworkRun, ...]

    def scores(self, task: str) -> tuple[float, ...]:
        """The scores of a task by seed."""
        return tuple(run.scores[task] for run in self.runs if task in run.scores)

    def scratch(self, task: str) -> tuple[float, ...]:
        """The scores of a task from random weights."""
        return tuple(run.scratch[task] for run in self.runs if task in run.scratch)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A task of the suite: its metric, and the score of a trivial baseline."""

    name: str
    metric: str
    baseline: float


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a comparison so far."""

    tasks: tuple[TaskFacts, ...]
    standings: tuple[MemberStanding, ...]

    def mean_over_tasks(self, scores: Mapping[str, Sequence[float]]) -> float:
        """The mean over tasks of the mean over seeds; NaN unless every task has a score."""
        is_complete = bool(self.tasks) and all(scores.get(task.name) for task in self.tasks)
        return mean([mean(scores[task.name]) for task in self.tasks]) if is_complete else math.nan

    def to_json(self) -> dict[str, Any]:
        """JSON-serializable data; NaN becomes null."""
        members = [{"name": one.name, "runs": list(map(asdict, one.runs))} for one in self.standings]
        return {"tasks": _nan_to_null(list(map(asdict, self.tasks))), "members": _nan_to_null(members)}


@dataclass(frozen=True, slots=True)
class ResultsReader:
    """Reads the folder of a comparison."""

    out: Path
    tasks: Sequence[SuiteTask]
    meters: Mapping[str, FlopsMeter]
    """By arm."""
    points: int
    scratch: frozenset[str]
    """The arms that are also fine-tuned from random weights."""

    def read(self, arms: Sequence[Arm], found: Sequence[ArmRun]) -> Results:
        """Everything that is finished."""
        facts: dict[str, TaskFacts] = {}
        standings = []
        for arm in arms:
            own = [entry for entry in found if entry.arm == arm and is_finished(self.out / entry.folder / NETWORK)]
            standings.append(MemberStanding(arm.name, tuple(self._network_run(entry, facts) for entry in own)))
        return Results(tuple(facts[task.name] for task in self.tasks if task.name in facts), tuple(standings))

    def _network_run(self, entry: ArmRun, facts: dict[str, TaskFacts]) -> NetworkRun:
        folder = self.out / entry.folder
        scores = self._task_scores(entry, folder, entry.arm.name in self.scratch)
        facts |= {one.task: TaskFacts(one.task, one.metric, one.baseline) for one in scores}
        return NetworkRun(
            entry.seed,
            int(read_run(folder / NETWORK)["parameters"]),
            read_eval_curve(folder / NETWORK, self.meters[entry.arm.name]),
            {one.task: one.pretrained[0] for one in scores if one.pretrained},
            {one.task: one.scratch[0] for one in scores if one.scratch},
            self._points(entry, folder),
        )

    def _task_scores(self, entry: ArmRun, folder: Path, scratch: bool) -> tuple[TaskScores, ...]:
        return collect_scores(entry.suite_runs(self.tasks, scratch), folder)

    def _points(self, entry: ArmRun, folder: Path) -> tuple[CurvePoint, ...]:
        if self.points == 1:
            return ()
        record = list(read_record(folder / NETWORK / RECORD))
        spent = {one.step: one for one in self.meters[entry.arm.name].spent(record)}
        return tuple(
            CurvePoint(
                spent[step],
                {
                    one.task: one.pretrained[0]
                    for one in self._task_scores(entry, self.out / entry.point_folder(number), scratch=False)
                    if one.pretrained
                },
            )
            for number, step in enumerate(point_steps(record, self.points), start=1)
        )


def _nan_to_null(value: object) -> object:
    """Replace NaN and infinity by null."""
    if isinstance(value, dict):
        return {name: _nan_to_null(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_nan_to_null(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
