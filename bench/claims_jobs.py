"""The commands of a claim: one for each network and each measurement, worked off several at once until time is up.

What arrives: entries (an arm with a seed), and what is wished for. What leaves: finished folders, a log beside each.
What never happens here: a run that is made twice. What is stopped goes on with the same line.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from claims_list import Claim

from unmask.lab.compare.curves import fraction_done

BUDGETS = ("steps", "tokens", "hours", "flops")
PROBE = Path(__file__).with_name("claims_probe.py")
_LOOK = 1.0
"""Seconds between two looks at the clock."""
_SAY = 20.0
"""Seconds between two words about how far it is."""
_CUT_HELD_OUT = "0.1"
"""Of a small corpus more has to be held out, or there is nothing to judge by."""


@dataclass(frozen=True)
class Job:
    """One command, its log, and the file that says it is done."""

    name: str
    words: tuple[str, ...]
    done: Path
    log: Path
    answers: bool = False
    """Whether what it prints is that file."""


@dataclass(frozen=True)
class Entry:
    """An arm with a seed, and the folder of everything that belongs to it."""

    arm: str
    words: str
    seed: int
    folder: Path

    @property
    def network(self) -> Path:
        """Its pre-training."""
        return self.folder / "network"


@dataclass(frozen=True)
class Bench:
    """Makes the jobs of a claim."""

    claim: Claim
    wish: argparse.Namespace
    out: Path

    @property
    def data(self) -> str:
        """The text that is learned from: all of the prepared folder, or a part of it."""
        return str(self.out / "cut") if self.wish.cut else str(self.wish.data)

    def before(self) -> Iterator[Job]:
        """What all entries need."""
        wish = self.wish
        if wish.cut:
            words = (str(PROBE), "cut", "--data", str(wish.data), "--out", self.data, "--tokens", str(wish.cut))
            yield Job("cut", words, Path(self.data) / "manifest.json", self.out / "cut.log")
        if "pairs" in self.claim.probes:
            pairs = self.out / "pairs"
            words = (str(PROBE), "pairs", "--data", self.data, "--out", str(pairs), "--length", str(wish.length))
            yield Job("pairs", words, pairs / "order.dev.jsonl", self.out / "pairs.log")

    def network(self, entry: Entry) -> Job:
        """The pre-training of an entry."""
        wish = self.wish
        given = {name: getattr(wish, name) for name in BUDGETS}
        budget = [word for name, value in given.items() if value is not None for word in (f"--{name}", value)]
        rows = [f"--set=stages.*.length={wish.length}", "--batch", str(wish.batch), "--seed", str(entry.seed)]
        rows += ["--held-out", _CUT_HELD_OUT] if wish.cut else []
        shared = ["--size", wish.size, "--short", "--data", self.data, "--out", str(entry.network), *budget, *rows]
        words = ("-m", "unmask", "pretrain", *shlex.split(entry.words), *shared, *shlex.split(wish.words))
        return Job("network", words, entry.network / "finished.json", entry.folder / "network.log")

    def measurements(self, entry: Entry) -> Iterator[Job]:
        """Everything that is measured on the network of an entry: the probes, the tasks."""
        for probe in self.claim.probes:
            if probe == "pairs":
                for kind in ("next", "order"):
                    files = f"{kind}={self.out}/pairs/{kind}.train.jsonl:{self.out}/pairs/{kind}.dev.jsonl"
                    yield _tune(entry, files, "frozen", "--policy frozen --epochs 5")
            else:
                yield self._probe(entry, probe)
        for task in self.wish.task:
            for policy in self.claim.policies:
                words = self.wish.tune_words if policy == "full" else f"--policy {policy} --epochs 5"
                yield _tune(entry, task, policy, words)

    def after(self, arms: Sequence[str]) -> Iterator[Job]:
        """What is measured when nothing else runs."""
        if self.claim.timed:
            wish = self.wish
            said = [f"--arm={name}={words}" for name, words in self.claim.arms.items() if name in arms]
            words = (str(PROBE), "steps", "--data", self.data, "--size", wish.size, *said)
            words += ("--length", str(wish.length), "--batch", str(wish.batch))
            yield Job("steps", words, self.out / "steps.json", self.out / "steps.log", answers=True)

    def _probe(self, entry: Entry, probe: str) -> Job:
        words = (str(PROBE), probe, "--run", str(entry.network), "--data", self.data, "--length", str(self.wish.length))
        done = entry.folder / f"probe-{probe}.json"
        return Job(done.stem, words, done, entry.folder / f"{done.stem}.log", answers=True)


def _tune(entry: Entry, task: str, policy: str, words: str) -> Job:
    name, _, rest = task.partition("=")
    learn, judge, *more = rest.split(":", 2)
    folder = entry.folder / f"tuned-{name}-{policy}"
    files = ("--task", learn, "--dev", judge, "--out", str(folder), "--seed", str(entry.seed))
    manner = (*shlex.split(words), *shlex.split("".join(more)))
    line = ("-m", "unmask", "tune", str(entry.network), *files, *manner)
    return Job(folder.name, line, folder / "finished.json", entry.folder / f"{folder.name}.log")


@dataclass
class Work:
    """Works off jobs until time is up; then what runs is stopped, and nothing more begins."""

    bench: Bench
    at_once: int
    until: float
    """In seconds of the monotonic clock."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def all(self, entries: Sequence[Entry]) -> None:
        """Every entry; its measurements begin when its network is finished. What fails is left out."""
        if not all(self.one(job) for job in self.bench.before()):
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            try:
                self._wait(pool, {pool.submit(self._network, entry) for entry in entries}, entries)
            except KeyboardInterrupt:
                self.stopped.set()
                pool.shutdown(cancel_futures=True)
        for job in self.bench.after([entry.arm for entry in entries]):
            self.one(job)

    def _wait(self, pool: ThreadPoolExecutor, left: set[Future[list[Job]]], entries: Sequence[Entry]) -> None:
        said, began = time.monotonic(), time.monotonic()
        while left:
            ended, left = wait(left, _LOOK, FIRST_COMPLETED)
            left |= {pool.submit(self._measure, job) for future in ended for job in future.result()}
            if time.monotonic() - said >= _SAY:
                said = time.monotonic()
                shares = [fraction_done(entry.network) for entry in entries]
                share, ready = sum(shares) / len(shares), sum(share == 1 for share in shares)
                print(f"{said - began:5.0f} s: {share:4.0%} pre-trained, {ready} of {len(shares)} done", flush=True)

    def _network(self, entry: Entry) -> list[Job]:
        return list(self.bench.measurements(entry)) if self.one(self.bench.network(entry)) else []

    def _measure(self, job: Job) -> list[Job]:
        self.one(job)
        return []

    def one(self, job: Job) -> bool:
        """Run a command unless it is done or time is up; says whether it is done."""
        if job.done.exists():
            return True
        if self._over():
            return False
        job.log.parent.mkdir(parents=True, exist_ok=True)
        answer = job.done.with_suffix(".part") if job.answers else job.log
        began = time.monotonic()
        with job.log.open("w", encoding="utf-8") as log, answer.open("w" if job.answers else "a") as out:
            code = self._call(job, log.fileno(), out.fileno())
        if not code and job.answers:
            answer.replace(job.done)
        place = f"{job.log.parent.name}/{job.name}"
        said = f"{time.monotonic() - began:.0f} s" if not code else f"stopped or failed ({code}), see {job.log}"
        print(f"{place}: {said}", flush=True)
        return not code

    def _call(self, job: Job, log: int, out: int) -> int:
        threads = str(max(1, (os.cpu_count() or 1) // self.at_once))
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        process = subprocess.Popen([sys.executable, *job.words], stdout=out, stderr=log, env=environment)
        while True:
            try:
                return process.wait(_LOOK)
            except subprocess.TimeoutExpired:
                if self._over():
                    process.terminate()
                    return process.wait() or 1

    def _over(self) -> bool:
        return self.stopped.is_set() or time.monotonic() > self.until
