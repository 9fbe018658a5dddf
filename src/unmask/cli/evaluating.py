"""The flow of `evaluate`: work off the runs of a suite, several at once, then tell.

What arrives: tasks and seeds. What leaves: finished runs, `results.json`, answers to test files, a page and a table.
What never happens here: a run that is made twice, or lost. Each has its own folder and is a command of its own, which
goes on where it was; what is finished is not started again.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

from unmask.cli.progress import Tick, progress
from unmask.cli.terminal import console, interruptible, say
from unmask.errors import UserError
from unmask.evaluate.metrics import NAMES
from unmask.evaluate.suite import Attempt, Figures, describe, done, figures, mean, plan, spread
from unmask.evaluate.suite_file import SuiteTask
from unmask.report.suite_page import TaskScores, suite_page
from unmask.shards.files import write_json, write_text
from unmask.shards.lock import wait_until_free
from unmask.train.folder import begin, check, hold

RESULTS, PAGE, LOG = "results.json", "report.html", "log.txt"


@dataclass(frozen=True, slots=True)
class Suite:
    """A network, tasks and seeds."""

    source: Path
    tasks: Sequence[SuiteTask]
    options: Sequence[str]
    """What every run is told."""
    seeds: int
    scratch: bool
    out: Path
    at_once: int = 0
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def work(self) -> None:
        """Make the runs that are missing, then print the table."""
        attempts = plan(self.tasks, self.seeds, self.scratch)
        with hold(self.out), interruptible(self.out):
            description = describe(self.tasks, self.options, self._known())
            check(self.out, description)
            begin(self.out, description)
            self._make([one for one in attempts if not done(one, self.out)], len(attempts))
            self._answer_tests()
            found = figures(attempts, self.out)
            write_json(self.out / RESULTS, {"tasks": [_finite(asdict(one)) for one in found]})
            write_text(self.out / PAGE, suite_page(self.source.resolve().name, [_told(one) for one in found]))
            show(found)
            say(f"The figures are in {self.out / RESULTS} and {self.out / PAGE}, each run in {self.out / 'runs'}.")

    def _known(self) -> dict[str, str]:
        """The network, by its weights."""
        from unmask.export.source import open_source
        from unmask.tune.tuning import digest_of

        opened = open_source(self.source)
        return {"name": opened.name, "weights": digest_of(opened.model), "tokenizer": opened.tokenizer.digest}

    def _make(self, missing: Sequence[Attempt], total: int) -> None:
        """Work off runs, several at once; the first that fails stops all."""
        workers = min(self.at_once or os.cpu_count() or 1, max(len(missing), 1))
        with progress(f"{total} runs, {workers} at once", total) as tick:
            tick(total - len(missing))
            with ThreadPoolExecutor(workers) as pool:
                try:
                    self._wait([pool.submit(self._run, one, workers) for one in missing], total, tick)
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for process in self.running:
                        process.terminate()
                    raise

    def _wait(self, futures: Sequence[Future[str]], total: int, tick: Tick) -> None:
        for number, future in enumerate(as_completed(futures), start=total - len(futures) + 1):
            tick(number, future.result())

    def _run(self, attempt: Attempt, workers: int) -> str:
        """One run in a process of its own, its words in a file."""
        folder = self.out / attempt.place
        folder.parent.mkdir(parents=True, exist_ok=True)
        wait_until_free(folder)
        words = attempt.words(self.source, self.out, self.options)
        log = folder.parent / f"{folder.name}.{LOG}"
        self._call(words, log, workers)
        return attempt.place.removeprefix("runs/")

    def _call(self, words: Sequence[str], log: Path, workers: int) -> None:
        threads = str(max(1, (os.cpu_count() or 1) // workers))
        with log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "unmask", *words],
                stdout=file,
                stderr=file,
                env={**os.environ, "OMP_NUM_THREADS": threads},
            )
            self.running.append(process)
            code = process.wait()
        self.running.remove(process)
        if code:
            raise UserError(f"{_reason(log) or f'A run ended with {code}'} (the run: {log})")

    def _answer_tests(self) -> None:
        """Answer the files whose truth is not known, with the first seed."""
        for task in self.tasks:
            run = self.out / "runs" / task.name / "tuned-0"
            for test in task.tests:
                answers = self.out / "submissions" / f"{task.name}.jsonl"
                if not answers.exists():
                    self._call(["predict", str(run), str(test), "--out", str(answers)], run.parent / f"test.{LOG}", 1)


def _reason(log: Path) -> str:
    """What a run said when it stopped, if it was a sentence."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.removeprefix("unmask: ") for line in lines if line.startswith("unmask: ")]
    return said[-1] if said else ""


def show(found: Sequence[Figures]) -> None:
    """The table of a suite."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("score")
    for name in ("pre-trained", "from scratch", "gain", "chance"):
        table.add_column(name, justify="right")
    for one in found:
        gain = f"{100 * one.gain:+.1f}{'' if one.apart else ' ~'}" if one.scratch else ""
        sides = (_side(one.tuned), _side(one.scratch))
        table.add_row(one.task, NAMES.get(one.metric, one.metric), *sides, gain, _hundred(one.chance))
    if len(found) > 1:
        table.add_row("mean", "", *(_hundred(mean([mean(side) for side in sides])) for sides in _sides(found)), "", "")
    console().print(table)
    if any(one.scratch and not one.apart for one in found):
        say("~ the seeds of both sides overlap: this difference may be chance.")


def _told(one: Figures) -> TaskScores:
    return TaskScores(one.task, NAMES.get(one.metric, one.metric), one.tuned, one.scratch, one.chance)


def _sides(found: Sequence[Figures]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [one.tuned for one in found], [one.scratch for one in found]


def _side(scores: Sequence[float]) -> str:
    varies = f" ± {100 * spread(scores):.1f}" if len(scores) > 1 else ""
    return _hundred(mean(scores)) + varies if scores else ""


def _hundred(score: float) -> str:
    return f"{100 * score:.1f}" if math.isfinite(score) else ""


def _finite(said: dict[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in said.items()
    }
