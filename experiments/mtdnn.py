"""Many tasks on one trunk against each task alone: MT-DNN's claim, measured (Liu et al., 2019).

    python -m experiments.mtdnn --model runs/bert --tasks tasks.toml --seeds 3 --out mtdnn
    python -m experiments.mtdnn --model runs/bert --tasks tasks.toml --seeds 1 --epochs 0.1 --each 0.1 --out check   (a check)

What arrives: a network, and a file of tasks as `unmask multitask` reads it. What leaves: a table, the same as JSON, and
sentences that say whether the claim holds: that tasks with few rows gain from the others, and that mixed batches do
better than one task after another.
What never happens here: training. Each run is the command that a user types, `unmask multitask`; what is finished is
not repeated, and the same call goes on after a stop.

| column | what it is |
|---|---|
| alone | each task with a trunk of its own, for `--epochs` |
| longer | the same for `--epochs` + `--each`: as many epochs as "then each" has in all |
| mixed | all tasks on one trunk, their batches shuffled, for `--epochs` |
| then each | from there each task alone, for `--each` epochs |
| in turns | all tasks on one trunk, one whole task after another in every epoch |

All columns have the same optimizer, rate, schedule and batch, and the same number of batches of every task.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ("alone", "longer", "mixed", "then each", "in turns")
FINISHED, TASK = "finished.json", "task.json"


@dataclass(frozen=True)
class Attempt:
    """One call of the command, and the folders whose scores it leaves."""

    name: str
    tasks: Path
    out: Path
    seed: int
    words: tuple[str, ...]
    leaves: Mapping[tuple[str, str], Path]
    """By column and task."""

    @property
    def done(self) -> bool:
        """Whether everything is there."""
        return (self.out / FINISHED).is_file() and all((folder / TASK).is_file() for folder in self.leaves.values())


@dataclass(frozen=True)
class Line:
    """What was found for one task: the scores of all seeds by column, in hundredths."""

    task: str
    kind: str
    metric: str
    rows: int
    scores: Mapping[str, Sequence[float]]


def main() -> None:
    wish = _wishes()
    wish.out.mkdir(parents=True, exist_ok=True)
    attempts = sorted(_attempts(wish), key=lambda attempt: -len(attempt.leaves))  # the longest first
    _work_off([attempt for attempt in attempts if not attempt.done], wish)
    lines = _read(attempts)
    _print(lines, wish.small)
    told = {"epochs": wish.epochs, "each": wish.each, "rate": wish.rate, "optimizer": wish.optimizer}
    found = {line.task: {**vars(line), "scores": dict(line.scores)} for line in lines}
    (wish.out / "mtdnn.json").write_text(json.dumps({"settings": told, "tasks": found}, indent=2), encoding="utf-8")


def _attempts(wish: argparse.Namespace) -> Iterator[Attempt]:
    """Everything that is to be run."""
    declared = tomllib.loads(wish.tasks.read_text(encoding="utf-8"))["tasks"]
    for seed in range(wish.seeds):
        place = wish.out / f"seed-{seed}"
        for name, order, each in (("mixed", "mixed", wish.each), ("in turns", "alternating", 0)):
            out = place / name.replace(" ", "-")
            leaves = {(name, task): out / task for task in declared}
            words: tuple[str, ...] = ("--epochs", str(wish.epochs), "--order", order)
            if each:
                leaves |= {("then each", task): out / "each" / task for task in declared}
                words += ("--then-each", str(each))
            yield Attempt(f"{name}, seed {seed}", wish.tasks, out, seed, words, leaves)
        for name, epochs in (("longer", wish.epochs + wish.each), ("alone", wish.epochs)):
            for task, said in declared.items():
                out = place / name / task
                one = _write_one(wish, task, said)
                leaves = {(name, task): out / task}
                yield Attempt(f"{task} {name}, seed {seed}", one, out, seed, ("--epochs", str(epochs)), leaves)


def _write_one(wish: argparse.Namespace, task: str, said: Mapping[str, Any]) -> Path:
    """A file that declares one task only, with paths that hold from anywhere."""
    here = wish.tasks.resolve().parent
    values = {key: str(here / value) if key in ("train", "dev") else value for key, value in said.items()}
    path: Path = wish.out / f"{task}.toml"
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    path.write_text(f"[tasks.{task}]\n{''.join(lines)}", encoding="utf-8")
    return path


def _work_off(attempts: Sequence[Attempt], wish: argparse.Namespace) -> None:
    """Run what is not finished, some at once; a run that fails is told, and the others go on."""
    began, done, failed = time.monotonic(), 0, []
    threads = str(max(1, (os.cpu_count() or 1) // wish.at_once))
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
    with ThreadPoolExecutor(wish.at_once) as pool:
        for attempt, code in pool.map(lambda one: (one, _call(one, wish, environment)), attempts):
            done += 1
            spent = time.monotonic() - began
            left = spent / done * (len(attempts) - done)
            print(f"{done}/{len(attempts)} {attempt.name}: {spent:,.0f} s so far, about {left:,.0f} s left", flush=True)
            if code:
                failed.append(attempt)
    for attempt in failed:
        print(f"\n{attempt.name} failed:\n{_log(attempt).read_text(encoding='utf-8')[-2000:]}", file=sys.stderr)
    if failed:
        sys.exit(1)


def _call(attempt: Attempt, wish: argparse.Namespace, environment: Mapping[str, str]) -> int:
    shared = {
        "--lr": wish.rate,
        "--batch-size": wish.batch,
        "--max-length": wish.length,
        "--optimizer": wish.optimizer,
    }
    shared |= {"--seed": attempt.seed, "--device": wish.device, "--out": attempt.out}
    words = [str(word) for pair in shared.items() for word in pair]
    command = [sys.executable, "-m", "unmask", "multitask", str(wish.model), str(attempt.tasks), *attempt.words, *words]
    _log(attempt).parent.mkdir(parents=True, exist_ok=True)
    with _log(attempt).open("w", encoding="utf-8") as log:
        return subprocess.run(
            command, stdout=log, stderr=subprocess.STDOUT, env=dict(environment), check=False
        ).returncode


def _log(attempt: Attempt) -> Path:
    return attempt.out.parent / f"{attempt.out.name}.log"


def _read(attempts: Sequence[Attempt]) -> list[Line]:
    """The scores of all folders."""
    found: dict[str, dict[str, list[float]]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for attempt in attempts:
        for (column, task), folder in attempt.leaves.items():
            said = json.loads((folder / TASK).read_text(encoding="utf-8"))
            score = said["metrics"][said["metric"]]
            facts[task] = said
            found.setdefault(task, {}).setdefault(column, []).append(math.nan if score is None else 100 * score)
    return [
        Line(task, said["task_type"], said["metric"], said["rows"]["train"], found[task])
        for task, said in facts.items()
    ]


def _print(lines: Sequence[Line], small: int) -> None:
    """The table, then what it says."""
    columns = [column for column in COLUMNS if column in lines[0].scores]
    print(f"\n{'task':16}{'kind':10}{'score':12}{'rows':>8}" + "".join(f"{column:>14}" for column in columns))
    for line in lines:
        cells = "".join(f"{_mean_and_spread(line.scores[column]):>14}" for column in columns)
        print(f"{line.task:16}{line.kind:10}{line.metric:12}{line.rows:>8,}{cells}")
    few = [line for line in lines if line.rows < small]
    for name, some in (("mean of all", lines), (f"mean, below {small:,} rows", few)):
        if some:
            cells = "".join(f"{_mean_and_spread(_means(some, column)):>14}" for column in columns)
            print(f"{name:46}{cells}")
    print()
    for better, worse in (("mixed", "alone"), ("then each", "alone"), ("then each", "longer"), ("mixed", "in turns")):
        for name, some in (("all tasks", lines), (f"tasks below {small:,} rows", few)):
            if some and better in columns and worse in columns:
                print(_verdict(name, better, worse, _means(some, better), _means(some, worse)))


def _means(lines: Sequence[Line], column: str) -> list[float]:
    """The mean over tasks, for each seed."""
    return [statistics.fmean(scores) for scores in zip(*(line.scores[column] for line in lines), strict=True)]


def _verdict(name: str, better: str, worse: str, ours: Sequence[float], theirs: Sequence[float]) -> str:
    gains = [one - other for one, other in zip(ours, theirs, strict=True)]
    gain, wins = statistics.fmean(gains), sum(one > 0 for one in gains)
    word = "beats" if gain > 0 else "does not beat"
    return (
        f"{name}: '{better}' {word} '{worse}' ({gain:+.2f} points on average; better in {wins} of {len(gains)} seeds)"
    )


def _mean_and_spread(scores: Sequence[float]) -> str:
    if len(scores) == 1:
        return f"{scores[0]:.2f}"
    return f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f}"


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Many tasks on one trunk against each task alone.")
    parser.add_argument("--model", type=Path, required=True, help="the network, as unmask multitask takes it")
    parser.add_argument("--tasks", type=Path, required=True, help="a TOML file of tasks")
    parser.add_argument("--out", type=Path, required=True, help="the folder of all runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=float, default=5.0)
    parser.add_argument("--each", type=float, default=2.0, help="epochs of each task alone after the mixed run")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--optimizer", choices=("adamw", "adamax"), default="adamw")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--small", type=int, default=5000, help="a task with fewer rows to learn from is small")
    parser.add_argument("--at-once", type=int, default=1, help="runs at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
