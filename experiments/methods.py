"""What each fine-tuning method is worth, and what it costs: tasks x policies x seeds, one table.

    python -m experiments.methods --model minilm --task sst2=train.jsonl.gz:dev.jsonl.gz --task rte=… --out runs/policies

Every run is the command that a user would type; what is finished is not made again. A policy is written as its words:
`adapter --adapter-width 8`, with a name of your own before it if you like: `narrow=adapter --adapter-width 8 --epochs 5`; `scratch`
stands for a full tune of newly drawn weights. Prints one line for each policy (mean
score over the tasks, trained parameters, seconds), one for each task, and writes `policies.json` with everything.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

POLICIES = ("full", "frozen", "layers", "adapter", "scratch")


@dataclass(frozen=True)
class Attempt:
    """One run."""

    task: str
    policy: str
    seed: int
    files: str
    words: str

    def folder(self, out: Path) -> Path:
        """Where it lies."""
        return out / self.task / f"{_name(self.policy).replace(' --', '-').replace(' ', '')}-{self.seed}"


def main() -> None:
    wish = _wishes()
    attempts = [
        Attempt(name, policy, seed, files, words)
        for seed in range(wish.first_seed, wish.first_seed + wish.seeds)
        for name, files, words in map(_task, wish.task)
        for policy in wish.policy or POLICIES
    ]
    until = time.monotonic() + 60 * wish.minutes
    with ThreadPoolExecutor(wish.at_once) as pool:
        list(pool.map(lambda attempt: _run(attempt, wish) if time.monotonic() < until else None, attempts))
    found = [(attempt, told) for attempt in attempts if (told := _told(attempt, wish.out))]
    _tables(found)
    lines = [
        {"task": one.task, "policy": _name(one.policy), "words": one.policy, "seed": one.seed, **told}
        for one, told in found
    ]
    (wish.out / "policies.json").write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the network: a run, or a Hugging Face folder")
    parser.add_argument(
        "--task", action="append", required=True, help="NAME=TRAIN:DEV[:options of finetune], repeatedly"
    )
    parser.add_argument(
        "--method", dest="policy", action="append", help="words for a method, repeatedly; usual: the five main ones"
    )
    parser.add_argument("--words", default="--epochs 3 --max-length 128", help="words for every tune")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="choose settings by some seeds, judge them by others")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run later; the same line goes on")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _task(words: str) -> tuple[str, str, str]:
    name, _, rest = words.partition("=")
    learn, judge, *more = rest.split(":", 2)
    return name, f"--train-file {learn} --dev-file {judge}", "".join(more)


def _run(attempt: Attempt, wish: argparse.Namespace) -> None:
    folder = attempt.folder(wish.out)
    if (folder / "finished.json").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    policy, *more = attempt.policy.rpartition("=")[2].split()
    manner = " ".join(["full --from-scratch" if policy == "scratch" else policy, *more])
    words = (
        f"finetune {wish.model} {attempt.files} --out {folder} --seed {attempt.seed} {wish.words} {attempt.words} "
        f"--method {manner}"
    )
    threads = str(max(1, (os.cpu_count() or 1) // wish.at_once))
    log = folder.with_suffix(".log")
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-m", "unmask", *shlex.split(words)],
            stdout=file,
            stderr=file,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
    told = _told(attempt, wish.out)
    print(f"{attempt.task:12s} {_name(attempt.policy):20s} seed {attempt.seed}: ", end="")
    print(f"{told['score']:.4f}" if told else f"failed ({done.returncode}), see {log}", flush=True)


def _name(policy: str) -> str:
    """What a policy is called in the tables."""
    return policy.partition("=")[0]


def _told(attempt: Attempt, out: Path) -> dict[str, float | str]:
    path = attempt.folder(out) / "task.json"
    if not path.exists():
        return {}
    said = json.loads(path.read_text(encoding="utf-8"))
    metric = said["metric"]
    score = said["metrics"][metric]
    return {
        "metric": metric,
        "score": math.nan if score is None else score,
        "trained": said["parameters"]["trained"],
        "all": said["parameters"]["all"],
        "seconds": said["seconds"],
    }


def _tables(found: list[tuple[Attempt, dict[str, float | str]]]) -> None:
    policies = list(dict.fromkeys(one.policy for one, _ in found))
    tasks = list(dict.fromkeys(one.task for one, _ in found))
    print(f"\n{'policy':22s} {'mean score':>10s} {'trained':>12s} {'share':>7s} {'seconds a run':>13s}")
    for policy in policies:
        some = [told for one, told in found if one.policy == policy]
        means = [_mean(found, task, policy) for task in tasks]
        trained = statistics.mean(float(told["trained"]) for told in some)
        share = statistics.mean(float(told["trained"]) / float(told["all"]) for told in some)
        seconds = statistics.mean(float(told["seconds"]) for told in some)
        print(f"{_name(policy):22s} {100 * statistics.mean(means):10.2f} {trained:12,.0f} {share:7.2%} {seconds:13.1f}")
    print(f"\n{'task':14s} {'metric':10s} " + " ".join(f"{_name(policy)[:16]:>16s}" for policy in policies))
    for task in tasks:
        metric = next(told["metric"] for one, told in found if one.task == task)
        cells = " ".join(f"{_cell(found, task, policy):>16s}" for policy in policies)
        print(f"{task:14s} {metric:10s} {cells}", flush=True)


def _scores(found: list[tuple[Attempt, dict[str, float | str]]], task: str, policy: str) -> list[float]:
    return [float(told["score"]) for one, told in found if (one.task, one.policy) == (task, policy)]


def _mean(found: list[tuple[Attempt, dict[str, float | str]]], task: str, policy: str) -> float:
    scores = _scores(found, task, policy)
    return statistics.mean(scores) if scores else math.nan


def _cell(found: list[tuple[Attempt, dict[str, float | str]]], task: str, policy: str) -> str:
    scores = _scores(found, task, policy)
    if not scores:
        return "-"
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return f"{100 * statistics.mean(scores):.1f} ± {100 * spread:.1f}"


if __name__ == "__main__":
    main()
