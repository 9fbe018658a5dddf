"""Curves of a pre-training run for a comparison, and copies of the run at intermediate points."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.core.io.atomic import atomic_folder
from unmask.core.records import Cloze
from unmask.lab.compare.arms import NETWORK
from unmask.tasks.recipe import Recipe
from unmask.train.flops_meter import ComputeSpent, FlopsMeter
from unmask.train.rundir.checkpoint import CHECKPOINTS, checkpoint_name, list_checkpoints, remove_atomically
from unmask.train.rundir.folder import RUN, is_finished
from unmask.train.rundir.run_writer import RECORD, read_record

_ROUNDING = 1e-6
"""Fractions are written with six digits."""
_TAIL_BYTES = 65536
"""Bytes at the end of a log that contain a step; samples between steps are long lines."""


@dataclass(frozen=True, slots=True)
class EvalPoint:
    """One evaluation on held-out text, with the compute spent until then."""

    spent: ComputeSpent
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class EvalCurve:
    """The evaluations of one run, for its masked-token objective."""

    objective: str
    points: tuple[EvalPoint, ...]

    @property
    def last(self) -> EvalPoint:
        """The last evaluation."""
        return self.points[-1]


def read_eval_curve(folder: Path, meter: FlopsMeter) -> EvalCurve:
    """The evaluations of a finished run."""
    record = list(read_record(folder / RECORD))
    at = {0: ComputeSpent(0, 0, 0.0, 0.0)} | {spent.step: spent for spent in meter.spent(record)}
    name = masked_objective_name(meter.recipe, record)
    return EvalCurve(
        name,
        tuple(
            EvalPoint(at[line["step"]], line["loss"][name], line["accuracy"][name])
            for line in record
            if line["kind"] == "eval"
        ),
    )


def masked_objective_name(recipe: Recipe, record: Sequence[Mapping[str, Any]]) -> str:
    """The name of the first objective with masked-token targets, else of the first objective."""
    known: Mapping[str, float] = next(line["loss"] for line in record if line["kind"] == "eval")
    masked = [one.name for one in recipe.objectives if one.target_type is Cloze]
    return next(name for name in (*masked, *known) if name in known)


def evals_for(points: int, min_evals: int) -> int:
    """The number of evaluations: a multiple of `points`, so that every point has an evaluation and a checkpoint."""
    return points * -(-min_evals // points)


def point_steps(record: Sequence[Mapping[str, Any]], points: int) -> tuple[int, ...]:
    """The steps of all points but the last: the first evaluation at or after each fraction of the budget."""
    shares = {line["step"]: line["progress"] for line in record if line["kind"] == "step"}
    trials = [line["step"] for line in record if line["kind"] == "eval" and line["step"]]
    return tuple(
        next(step for step in trials if shares[step] >= number / points - _ROUNDING) for number in range(1, points)
    )


def keep_points(arm_folder: Path, folders: Sequence[Path], steps: Sequence[int]) -> None:
    """Copy each point into its own run folder; remove all checkpoints of the run but the last."""
    network = arm_folder / NETWORK
    for place, step in zip(folders, steps, strict=True):
        if not (place / NETWORK).exists():
            place.mkdir(parents=True, exist_ok=True)
            with atomic_folder(place / NETWORK) as part:
                for name in (RUN, "tokenizer.json"):
                    shutil.copy(network / name, part / name)
                saved = Path(CHECKPOINTS) / checkpoint_name(step)
                shutil.copytree(network / saved, part / saved, ignore=shutil.ignore_patterns("optimizer*"))
    for path in list_checkpoints(network / CHECKPOINTS)[:-1]:
        remove_atomically(path)


def fraction_done(network: Path) -> float:
    """The finished fraction of a pre-training run, by the last step in its log."""
    if is_finished(network):
        return 1.0
    path = network / RECORD
    if not path.is_file():
        return 0.0
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
        lines = file.read().splitlines()
    for line in reversed(lines):
        with suppress(ValueError):  # the first and the last line may be incomplete
            if (step := json.loads(line))["kind"] == "step":
                return float(step["progress"])
    return 0.0
