"""What papers claimed, tried again at the size that a small machine allows: one claim, its arms, seeds and a verdict.

    python bench/claims.py sop --data FOLDER --out runs/claims --tokens 50000000 --seeds 3
    python bench/claims.py all-tokens --data FOLDER --out runs/claims --flops 1e16 --task reviews=train.jsonl:dev.jsonl
    python bench/claims.py spans --data FOLDER --out runs/claims --tokens 50000000 --task cmrc=train.json:dev.json

Every arm is a command line of `unmask pretrain`, with the same text, budget, rows, descent and seeds; every measurement
is one of `unmask tune` or `claims_probe.py`. What is finished is not made again; the same line goes on. A claim is
borne out if its sign holds in every seed, or if the mean of the paired differences is more than two standard errors
from zero. Prints mean, least and most of every measurement, the verdicts, and the published figures beside them; writes
`CLAIM/claims.json` with everything. A small run that does not bear a claim out says so; it does not refute a large one.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from claims_list import CLAIMS, Claim, Expect

BUDGETS = ("steps", "tokens", "hours", "flops")
PROBE = Path(__file__).with_name("claims_probe.py")


@dataclass(frozen=True)
class Entry:
    """An arm with a seed, and the folder of everything that belongs to it."""

    arm: str
    words: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Job:
    """One command, and the file that says it is done."""

    name: str
    words: tuple[str, ...]
    done: Path
    answers: bool = False
    """Whether what it prints is that file."""


@dataclass(frozen=True)
class Measured:
    """One measurement of all arms: by arm, then by seed."""

    name: str
    values: Mapping[str, Mapping[int, float]]

    def paired(self, more: str, less: str) -> list[float]:
        """The differences of two arms, seed by seed."""
        ours, theirs = self.values.get(more, {}), self.values.get(less, {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def main() -> None:
    wish = _wishes()
    claim = CLAIMS[wish.claim]
    if claim.tasks and not wish.task:
        sys.exit(f"claims: {wish.claim} is measured on tasks of yours: give --task NAME=TRAIN:DEV. {claim.tasks}")
    if claim.flops and wish.flops is None:
        print("note: this claim is about equal FLOPs, so take --flops; equal steps favour the arm with a generator.")
    out = wish.out / wish.claim
    entries = [
        Entry(arm, words, seed, out / f"{arm}-{seed}")
        for seed in range(wish.first_seed, wish.first_seed + wish.seeds)
        for arm, words in claim.arms.items()
    ]
    if any(probe == "pairs" for probe in claim.probes) and not (out / "pairs/order.dev.jsonl").exists():
        files = (str(PROBE), "pairs", "--data", wish.data, "--out", str(out / "pairs"), "--length", str(wish.length))
        if _call(Job("pairs", files, out / "pairs"), out / "pairs.log"):
            sys.exit(1)
    until = time.monotonic() + 60 * wish.minutes
    with ThreadPoolExecutor(wish.at_once) as pool:
        list(pool.map(lambda entry: _make(entry, claim, wish, out, until), entries))
    found = measured(entries)
    lines = list(_verdicts(claim, found))
    _tables(claim, found, lines)
    told = {"claim": wish.claim, "says": claim.says, "published": claim.published, "verdicts": lines}
    values = {one.name: {arm: dict(seeds) for arm, seeds in one.values.items()} for one in found}
    (out / "claims.json").write_text(json.dumps({**told, "measured": values}, indent=1) + "\n", encoding="utf-8")


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claim", choices=sorted(CLAIMS))
    parser.add_argument("--data", required=True, help="a prepared folder")
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group(required=True)
    for name in BUDGETS:
        budget.add_argument(f"--{name}", help="the budget of every arm")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--length", type=int, default=128, help="tokens in a row, in all of training")
    parser.add_argument("--batch", type=int, default=64, help="rows in a step")
    parser.add_argument("--words", default="", help="more words for every pretrain")
    parser.add_argument("--tune-words", default="--epochs 3 --rate 1e-4", help="words for every full tune")
    parser.add_argument("--task", action="append", default=[], help="NAME=TRAIN:DEV[:words for tune], repeatedly")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run later; the same line goes on")
    return parser.parse_args()


def _make(entry: Entry, claim: Claim, wish: argparse.Namespace, out: Path, until: float) -> None:
    """The network of an entry, then everything that is measured on it; what fails is left out."""
    for job in _jobs(entry, claim, wish, out):
        if job.done.exists():
            continue
        if time.monotonic() > until or _call(job, entry.folder / f"{job.name}.log", wish.at_once):
            return
        print(f"{entry.arm:12s} seed {entry.seed}: {job.name}", flush=True)


def _jobs(entry: Entry, claim: Claim, wish: argparse.Namespace, out: Path) -> Iterator[Job]:
    """Every command for an entry: the pre-training, the probes, the tasks."""
    yield _pretrain(entry, wish)
    for probe in claim.probes:
        if probe == "pairs":
            for kind in ("next", "order"):
                files = f"{kind}={out / 'pairs' / kind}.train.jsonl:{out / 'pairs' / kind}.dev.jsonl"
                yield _tune(entry, files, "frozen", "--policy frozen --epochs 5")
        else:
            words = (str(PROBE), probe, "--run", str(entry.folder / "network"), "--data", wish.data)
            words += ("--length", str(wish.length))
            yield Job(f"probe-{probe}", words, entry.folder / f"probe-{probe}.json", answers=True)
    for task in wish.task:
        for policy in claim.policies:
            words = wish.tune_words if policy == "full" else f"--policy {policy} --epochs 5"
            yield _tune(entry, task, policy, words)


def _pretrain(entry: Entry, wish: argparse.Namespace) -> Job:
    network = entry.folder / "network"
    given = {name: getattr(wish, name) for name in BUDGETS}
    budget = [word for name, value in given.items() if value is not None for word in (f"--{name}", value)]
    rows = [f"--set=stages.*.length={wish.length}", "--batch", str(wish.batch), "--seed", str(entry.seed)]
    shared = ["--size", wish.size, "--short", "--data", wish.data, "--out", str(network), *budget, *rows]
    words = ("-m", "unmask", "pretrain", *shlex.split(entry.words), *shared, *shlex.split(wish.words))
    return Job("network", words, network / "finished.json")


def _tune(entry: Entry, task: str, policy: str, words: str) -> Job:
    name, _, rest = task.partition("=")
    learn, judge, *more = rest.split(":", 2)
    folder = entry.folder / f"tuned-{name}-{policy}"
    files = ("--task", learn, "--dev", judge, "--out", str(folder), "--seed", str(entry.seed))
    manner = (*shlex.split(words), *shlex.split("".join(more)))
    line = ("-m", "unmask", "tune", str(entry.folder / "network"), *files, *manner)
    return Job(folder.name, line, folder / "finished.json")


def _call(job: Job, log: Path, at_once: int = 1) -> int:
    """Run a command; what it prints is its log, or the answer that it was asked for."""
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = str(max(1, (os.cpu_count() or 1) // at_once))
    with log.open("w", encoding="utf-8") as file:
        ended = subprocess.run(
            [sys.executable, *job.words],
            stdout=subprocess.PIPE if job.answers else file,
            stderr=file,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
    if ended.returncode:
        print(f"failed ({ended.returncode}), see {log}", flush=True)
    elif job.answers:
        part = job.done.with_suffix(".part")
        part.write_bytes(ended.stdout)
        part.replace(job.done)
    return ended.returncode


def measured(entries: Sequence[Entry]) -> list[Measured]:
    """Everything that is known of all entries, by what was measured."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for entry in entries:
        for name, value in _known(entry):
            found.setdefault(name, {}).setdefault(entry.arm, {})[entry.seed] = value
    return [Measured(name, values) for name, values in found.items()]


def _known(entry: Entry) -> Iterator[tuple[str, float]]:
    record = entry.folder / "network/record.jsonl"
    if not (record.parent / "finished.json").exists():
        return
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    trial = [line for line in lines if line["kind"] == "trial"][-1]
    yield "parameters", json.loads((record.parent / "run.json").read_text(encoding="utf-8"))["parameters"]
    yield "steps", steps[-1]["step"]
    yield "ms a step", 1000 * _median_gap([line["seconds"] for line in steps])
    for name, loss in trial["loss"].items():
        yield f"{name} loss", loss
        yield f"{name} right", trial["right"][name]
    for path in sorted(entry.folder.glob("probe-*.json")):
        yield from json.loads(path.read_text(encoding="utf-8")).items()
    for path in sorted(entry.folder.glob("tuned-*/task.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        score = said["metrics"][said["metric"]]
        yield path.parent.name.removeprefix("tuned-"), math.nan if score is None else score


def _median_gap(seconds: Sequence[float]) -> float:
    gaps = [after - before for before, after in pairwise(seconds)]
    return statistics.median(gaps) if gaps else math.nan


def _verdicts(claim: Claim, found: Sequence[Measured]) -> Iterator[str]:
    for expect in claim.expects:
        for one in found:
            if expect.fits(one.name):
                yield verdict(expect, one)


def verdict(expect: Expect, one: Measured) -> str:
    """What the seeds say about one expectation, in a sentence."""
    about = f"{one.name}: {expect.told()}"
    gaps = one.paired(expect.more, expect.less)
    if not gaps or not all(map(math.isfinite, gaps)):
        return f"{about}: not measured."
    middle = statistics.fmean(gaps)
    error = statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    numbers = f"mean difference {middle:+.4f} (standard error {error:.4f}, {len(gaps)} seeds)"
    if len(gaps) == 1:
        return f"{about}: one seed decides nothing; difference {middle:+.4f}."
    if expect.equal:
        same = abs(middle) <= expect.equal or not _clear(gaps, error)
        return f"{about}: {'borne out' if same else 'not borne out'}; {numbers}."
    if _clear(gaps, error):
        return f"{about}: {'borne out' if middle > 0 else 'the other way round'}; {numbers}."
    return f"{about}: not borne out, no clear difference; {numbers}."


def _clear(gaps: Sequence[float], error: float) -> bool:
    """Whether a difference is one: its sign holds in every seed, or it is more than two standard errors from zero."""
    same = all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)
    return len(gaps) > 1 and (same or abs(statistics.fmean(gaps)) > 2 * error)


def _tables(claim: Claim, found: Sequence[Measured], lines: Sequence[str]) -> None:
    print(f"\n{claim.says}\npublished: {claim.published}\n")
    for one in found:
        print(one.name)
        for arm in claim.arms:
            values = list(one.values.get(arm, {}).values())
            if values:
                most = f"{min(values):.5g} to {max(values):.5g}"
                print(f"  {arm:16s} {statistics.fmean(values):>12.5g}   ({most}, n {len(values)})")
    print()
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
