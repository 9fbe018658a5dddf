"""The jobs of a claim: pre-training runs, fine-tuning runs and probes, as processes with a time limit.

A finished job is not repeated; an interrupted run resumes from its checkpoint.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from unmask.lab.claims.catalog import Claim
from unmask.lab.compare.curves import fraction_done

PROBE_MODULE = "unmask.lab.claims.probe"
_POLL_SECONDS = 1.0
_REPORT_SECONDS = 20.0
"""Seconds between two lines of progress."""
_SUBSET_HELDOUT = "0.1"
"""The held-out fraction of a small corpus; the usual fraction would leave too little to evaluate on."""


@dataclass(frozen=True, kw_only=True)
class ClaimOptions:
    """What the user chose: corpus, budget, size, tasks and the share of the machine."""

    data: Path
    out: Path
    budget: Mapping[str, str]
    """The name of a budget option of `pretrain` with its value."""
    size: str = "mini"
    max_length: int = 128
    batch_size: int = 64
    pretrain_args: str = ""
    finetune_args: str = ""
    tasks: tuple[str, ...] = ()
    """NAME=TRAIN:DEV[:more words for the fine-tuning]."""
    subset_tokens: int = 0
    max_parallel: int = 1


@dataclass(frozen=True)
class ClaimJob:
    """One command, its log, and the file that exists once it is finished."""

    name: str
    args: tuple[str, ...]
    done: Path
    log: Path
    prints_result: bool = False
    """Whether its standard output becomes the file `done`."""


@dataclass(frozen=True)
class ClaimRun:
    """An arm with a seed, and the folder of its network and its measurements."""

    arm: str
    args: str
    seed: int
    folder: Path

    @property
    def network(self) -> Path:
        """The folder of the pre-training run."""
        return self.folder / "network"


@dataclass(frozen=True)
class ClaimPlan:
    """Makes the jobs of a claim."""

    claim: Claim
    options: ClaimOptions

    @property
    def corpus(self) -> Path:
        """The corpus of all arms: the prepared folder, or a subset of it."""
        return self.options.out / "cut" if self.options.subset_tokens else self.options.data

    def preparation_jobs(self) -> Iterator[ClaimJob]:
        """Jobs that all runs depend on."""
        out, number = self.options.out, str(self.options.subset_tokens)
        if self.options.subset_tokens:
            args = _probe("subset", "--data", self.options.data, "--out", self.corpus, "--tokens", number)
            yield ClaimJob("subset", args, self.corpus / "manifest.json", out / "cut.log")
        if "pairs" in self.claim.probes:
            pairs, length = out / "pairs", self.options.max_length
            args = _probe("pairs", "--data", self.corpus, "--out", pairs, "--max-length", length)
            yield ClaimJob("pairs", args, pairs / "order.dev.jsonl", out / "pairs.log")

    def pretraining_job(self, run: ClaimRun) -> ClaimJob:
        """The pre-training of one arm with one seed."""
        options = self.options
        budget = [word for name, value in options.budget.items() for word in (f"--{name}", value)]
        rows = [f"--set=stages.*.max_length={options.max_length}", "--batch-size", str(options.batch_size)]
        heldout = ["--heldout-fraction", _SUBSET_HELDOUT] if options.subset_tokens else []
        common = ["--size", options.size, "--preset", "short", "--data", str(self.corpus), "--out", str(run.network)]
        words = [*shlex.split(run.args), *common, *budget, *rows, "--seed", str(run.seed), *heldout]
        args = ("-m", "unmask", "pretrain", *words, *shlex.split(options.pretrain_args))
        return ClaimJob("network", args, run.network / "finished.json", run.folder / "network.log")

    def measurement_jobs(self, run: ClaimRun) -> Iterator[ClaimJob]:
        """The probes and fine-tuning runs of one network."""
        for probe in self.claim.probes:
            if probe == "pairs":
                pairs = self.options.out / "pairs"
                for kind in ("next", "order"):
                    task = f"{kind}={pairs}/{kind}.train.jsonl:{pairs}/{kind}.dev.jsonl"
                    yield _finetune_job(run, task, "frozen", "--method frozen --epochs 5")
            else:
                yield self._probe_job(run, probe)
        for task in self.options.tasks:
            for method in self.claim.methods:
                args = self.options.finetune_args if method == "full" else f"--method {method} --epochs 5"
                yield _finetune_job(run, task, method, args)

    def timing_jobs(self, arms: Sequence[str]) -> Iterator[ClaimJob]:
        """Jobs that need the machine for themselves."""
        if self.claim.times_steps:
            options, out = self.options, self.options.out
            chosen = [f"--arm={name}={words}" for name, words in self.claim.arms.items() if name in arms]
            rows = ("--max-length", options.max_length, "--batch-size", options.batch_size)
            args = _probe("steps", "--data", self.corpus, "--size", options.size, *chosen, *rows)
            yield ClaimJob("steps", args, out / "steps.json", out / "steps.log", prints_result=True)

    def _probe_job(self, run: ClaimRun, probe: str) -> ClaimJob:
        length = self.options.max_length
        args = _probe(probe, "--run", run.network, "--data", self.corpus, "--max-length", length)
        done = run.folder / f"probe-{probe}.json"
        return ClaimJob(done.stem, args, done, run.folder / f"{done.stem}.log", prints_result=True)


def _probe(name: str, *args: object) -> tuple[str, ...]:
    return ("-m", PROBE_MODULE, name, *map(str, args))


def _finetune_job(run: ClaimRun, task: str, method: str, args: str) -> ClaimJob:
    name, _, rest = task.partition("=")
    train, dev, *more = rest.split(":", 2)
    folder = run.folder / f"tuned-{name}-{method}"
    files = ("--train-file", train, "--dev-file", dev, "--out", str(folder), "--seed", str(run.seed))
    words = (*shlex.split(args), *shlex.split("".join(more)))
    line = ("-m", "unmask", "finetune", str(run.network), *files, *words)
    return ClaimJob(folder.name, line, folder / "finished.json", run.folder / f"{folder.name}.log")


@dataclass
class ClaimJobRunner:
    """Runs jobs until the time limit; then running jobs are terminated and no further one starts."""

    plan: ClaimPlan
    deadline: float
    """In seconds of the monotonic clock."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def run_all(self, runs: Sequence[ClaimRun]) -> None:
        """Run every job; measurements start when their network is finished. Failed jobs are left out."""
        if not all(self.run_job(job) for job in self.plan.preparation_jobs()):
            return
        with ThreadPoolExecutor(self.plan.options.max_parallel) as pool:
            try:
                self._wait(pool, {pool.submit(self._pretrain, run) for run in runs}, runs)
            except KeyboardInterrupt:
                self.stopped.set()
                pool.shutdown(cancel_futures=True)
        for job in self.plan.timing_jobs([run.arm for run in runs]):
            self.run_job(job)

    def _wait(self, pool: ThreadPoolExecutor, pending: set[Future[list[ClaimJob]]], runs: Sequence[ClaimRun]) -> None:
        reported = start = time.monotonic()
        while pending:
            ended, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
            pending |= {pool.submit(self._measure, job) for future in ended for job in future.result()}
            if time.monotonic() - reported >= _REPORT_SECONDS:
                reported = time.monotonic()
                fractions = [fraction_done(run.network) for run in runs]
                mean, ready = sum(fractions) / len(fractions), sum(one == 1 for one in fractions)
                print(f"{reported - start:5.0f} s: {mean:4.0%} pre-trained, {ready} of {len(runs)} done", flush=True)

    def _pretrain(self, run: ClaimRun) -> list[ClaimJob]:
        return list(self.plan.measurement_jobs(run)) if self.run_job(self.plan.pretraining_job(run)) else []

    def _measure(self, job: ClaimJob) -> list[ClaimJob]:
        self.run_job(job)
        return []

    def run_job(self, job: ClaimJob) -> bool:
        """Run one command unless it is finished or the time is up. Returns whether it is finished."""
        if job.done.exists():
            return True
        if self._is_over():
            return False
        job.log.parent.mkdir(parents=True, exist_ok=True)
        output = job.done.with_suffix(".part") if job.prints_result else job.log
        start = time.monotonic()
        with job.log.open("w", encoding="utf-8") as log, output.open("w" if job.prints_result else "a") as out:
            code = self._call(job, log.fileno(), out.fileno())
        if not code and job.prints_result:
            output.replace(job.done)
        seconds = f"{time.monotonic() - start:.0f} s"
        state = seconds if not code else f"stopped or failed ({code}), see {job.log}"
        print(f"{job.log.parent.name}/{job.name}: {state}", flush=True)
        return not code

    def _call(self, job: ClaimJob, log: int, out: int) -> int:
        threads = str(max(1, (os.cpu_count() or 1) // self.plan.options.max_parallel))
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        process = subprocess.Popen([sys.executable, *job.args], stdout=out, stderr=log, env=environment)
        while True:
            try:
                return process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if self._is_over():
                    process.terminate()
                    return process.wait() or 1

    def _is_over(self) -> bool:
        return self.stopped.is_set() or time.monotonic() > self.deadline
