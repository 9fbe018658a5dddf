"""Try a claim: run its jobs, collect the measurements, print tables and verdicts, write `claims.json`."""

from __future__ import annotations

import math
import statistics
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from unmask.core.errors import InputError
from unmask.core.io.atomic import read_json, write_json
from unmask.lab.claims.catalog import CLAIMS, Claim
from unmask.lab.claims.jobs import ClaimJobRunner, ClaimOptions, ClaimPlan, ClaimRun
from unmask.lab.claims.verdict import Measurement, tables, verdicts
from unmask.train.rundir.folder import is_finished
from unmask.train.rundir.run_writer import RECORD, read_record

RESULTS = "claims.json"
_REPEATED_EPOCHS = 2.0
"""Epochs from which on the lowest loss may lie before the last evaluation."""


@dataclass(frozen=True, kw_only=True)
class ClaimRequest:
    """A claim by name, the arms and seeds to run, and a time limit."""

    name: str
    options: ClaimOptions
    arms: tuple[str, ...] = ()
    """Empty: all arms."""
    seeds: Sequence[int] = range(3)
    minutes: float = math.inf

    def checked(self) -> ClaimRequest:
        """The request with a budget; refuses unknown arms, missing tasks and two budgets."""
        claim, options = CLAIMS[self.name], self.options
        if claim.needed_tasks and not options.tasks:
            raise InputError(
                f"The claim {self.name} is measured on tasks of your own, found none. Give --task NAME=TRAIN:DEV. "
                f"{claim.needed_tasks}"
            )
        for task in options.tasks:
            _check_task(task)
        unknown = sorted({*self.arms} - {*claim.arms})
        if unknown:
            raise InputError(
                f"The claim {self.name} has the arms {', '.join(claim.arms)}; found {', '.join(unknown)}. Take some "
                "of its own."
            )
        if len(options.budget) > 1:
            raise InputError(f"A claim needs one budget, found {', '.join(options.budget)}. Leave out all but one.")
        usual = {"flops": f"{claim.flops:g}"} if claim.flops else {"tokens": str(claim.tokens)}
        return replace(self, options=replace(options, budget=options.budget or usual))


def _check_task(task: str) -> None:
    files = [Path(path) for path in task.partition("=")[2].split(":")[:2]]
    if len(files) < 2 or not all(path.is_file() for path in files):
        raise InputError(f"--task needs NAME=TRAIN:DEV with two files, found {task}. Give two files that exist.")


def run_claim(request: ClaimRequest) -> None:
    """Run what is missing of a claim, then print and write what was measured."""
    request = request.checked()
    claim, out = CLAIMS[request.name], request.options.out
    arms = request.arms or tuple(claim.arms)
    runs = [ClaimRun(arm, claim.arms[arm], seed, out / f"{arm}-{seed}") for seed in request.seeds for arm in arms]
    plan = ClaimPlan(claim, request.options)
    if claim.flops and "flops" not in request.options.budget:
        print("note: this claim is about equal FLOPs; a budget in steps favours the arms with a generator.")
    ClaimJobRunner(plan, time.monotonic() + 60 * request.minutes).run_all(runs)
    found = collect_measurements(runs, out)
    lines = list(verdicts(claim, found))
    budget = ", ".join(f"{float(value):,g} {name}" for name, value in request.options.budget.items())
    _print(claim, arms, found, lines, _describe_scale(request.options, budget))
    head = {"claim": request.name, "statement": claim.statement, "published": claim.published, "budget": budget}
    values = {one.name: {arm: dict(seeds) for arm, seeds in one.values.items()} for one in found}
    curves = {run.folder.name: _eval_curve(run) for run in runs}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / RESULTS, {**head, "verdicts": lines, "measured": values, "curves": curves})


def _describe_scale(options: ClaimOptions, budget: str) -> str:
    rows = f"rows of {options.max_length} tokens, {options.batch_size} in a step"
    return f"{options.size}, {rows}, {budget} for each network"


def collect_measurements(runs: Sequence[ClaimRun], out: Path) -> list[Measurement]:
    """All measurements that exist for these runs."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for run in runs:
        for name, value in _measurements(run):
            found.setdefault(name, {}).setdefault(run.arm, {})[run.seed] = value
    timed = _json(out / "steps.json") if (out / "steps.json").exists() else {}
    rounds = {name: {arm: dict(enumerate(values)) for arm, values in arms.items()} for name, arms in timed.items()}
    return [
        *(Measurement(name, values) for name, values in found.items()),
        *(Measurement(name, values, "rounds") for name, values in rounds.items()),
    ]


def _measurements(run: ClaimRun) -> Iterator[tuple[str, float]]:
    if not is_finished(run.network):
        return
    metadata, lines = _json(run.network / "run.json"), _log_lines(run)
    steps = [line for line in lines if line["kind"] == "step"]
    evals = [line for line in lines if line["kind"] == "eval"]
    epochs = steps[-1]["tokens"] / metadata["corpus"]["tokens"] / (1 - metadata["held_out"])
    yield "parameters", metadata["parameters"]
    yield "steps", steps[-1]["step"]
    yield "tokens, millions", steps[-1]["tokens"] / 1e6
    yield "epochs", epochs
    yield "ms per step, shared", 1000 * _median_gap([line["seconds"] for line in steps])
    for name, loss in evals[-1]["loss"].items():
        yield f"{name} loss", loss
        yield f"{name} accuracy", evals[-1]["accuracy"][name]
        if epochs >= _REPEATED_EPOCHS:
            best = min(evals, key=lambda line, name=name: line["loss"][name])  # type: ignore[misc]
            yield f"{name} lowest loss", best["loss"][name]
            yield f"  after epochs, {name}", epochs * best["step"] / steps[-1]["step"]
    for path in sorted(run.folder.glob("probe-*.json")):
        yield from _json(path).items()
    for path in sorted(run.folder.glob("tuned-*/task.json")):
        task = _json(path)
        score = task["metrics"][task["metric"]]
        yield path.parent.name.removeprefix("tuned-"), math.nan if score is None else score


def _json(path: Path) -> dict[str, Any]:
    return read_json(path, "Remove it, and start the same command again.", InputError)


def _log_lines(run: ClaimRun) -> list[Mapping[str, Any]]:
    path = run.network / RECORD
    return list(read_record(path)) if path.exists() else []


def _eval_curve(run: ClaimRun) -> list[dict[str, Any]]:
    """The evaluations of a run, finished or not."""
    keys = ("step", "tokens", "loss", "accuracy")
    return [{key: line[key] for key in keys} for line in _log_lines(run) if line["kind"] == "eval"]


def _median_gap(seconds: Sequence[float]) -> float:
    gaps = [after - before for before, after in pairwise(seconds)]
    return statistics.median(gaps) if gaps else math.nan


def _print(claim: Claim, arms: Sequence[str], found: Sequence[Measurement], lines: Sequence[str], scale: str) -> None:
    print(f"\n{textwrap.fill(claim.statement, 80)}\n\n{textwrap.fill(f'published: {claim.published}', 80)}")
    print("  published scale: networks of base size, at least hundreds of times as many tokens")
    print(f"  scale here: {scale}\n")
    for line in (*tables(arms, found), ""):
        print(line)
    for line in lines:
        print(textwrap.fill(line, 80, subsequent_indent="  "))
