"""The flow of `evaluate`: work off the runs of a suite, several at once, then tell.

What arrives: tasks and seeds. What leaves: finished runs, `results.json`, answers to test files, a page and a table.
What never happens here: a run that is made twice, or lost. Each has its own folder and is a command of its own, which
goes on where it was; what is finished is not started again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from unmask.cli.children import Child, Children
from unmask.cli.progress import progress
from unmask.cli.terminal import console, interruptible, say
from unmask.evaluate.metrics import NAMES
from unmask.evaluate.suite import Attempt, Figures, check_readable, describe, done, figures, mean, plan
from unmask.evaluate.suite_file import SuiteTask
from unmask.report.scores import scored
from unmask.report.suite_page import TaskScores, suite_page
from unmask.shards.files import write_json, write_text
from unmask.train.folder import begin, check, hold

RESULTS, PAGE = "results.json", "report.html"


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
    """Runs that share the machine; 0: one for each core."""

    def work(self) -> None:
        """Make the runs that are missing, then print the table."""
        attempts = plan(self.tasks, self.seeds, self.scratch)
        check_readable(self.tasks)
        with hold(self.out), interruptible(self.out):
            description = describe(self.tasks, self.options, self._known())
            check(self.out, description)
            begin(self.out, description)
            self._make([one for one in attempts if not done(one, self.out)], len(attempts))
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
        """Work off runs, several at once; the first that fails stops all. Then the files without truth."""
        workers = min(self.at_once or os.cpu_count() or 1, max(len(missing), 1))
        with progress(f"{total} runs, {workers} at once", total) as tick:

            def watch(running: Sequence[Child]) -> None:
                left = sum(not done(one, self.out) for one in missing)
                names = (str(child.folder.relative_to(self.out / "runs")) for child in running[:2])
                tick(total - left, ", ".join(names))

            children = Children(workers, watch)
            watch(())
            children.work(self._child(one) for one in missing)
            children.work(self._tests())

    def _child(self, attempt: Attempt) -> Child:
        return Child(tuple(attempt.words(self.source, self.out, self.options)), self.out / attempt.place)

    def _tests(self) -> Iterator[Child]:
        """Answers to the files whose truth is not known, by the first seed."""
        for task in self.tasks:
            run, answers = self.out / "runs" / task.name / "tuned-0", self.out / "submissions" / f"{task.name}.jsonl"
            if not answers.exists():
                for test in task.tests:
                    words = ("predict", str(run), str(test), "--out", str(answers))
                    yield Child(words, run.parent / "test")


def show(found: Sequence[Figures]) -> None:
    """The table of a suite."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("score")
    for name in ("pre-trained", "from scratch", "gain", "chance"):
        table.add_column(name, justify="right")
    for one in found:
        gain = f"{100 * one.gain:+.1f}{'' if one.apart else ' ~'}" if one.scratch else ""
        sides = (scored(one.tuned), scored(one.scratch))
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


def _hundred(score: float) -> str:
    return f"{100 * score:.1f}" if math.isfinite(score) else ""


def _finite(said: dict[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in said.items()
    }
