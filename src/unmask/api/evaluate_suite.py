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

from unmask.api.subprocess_jobs import Job, JobRunner
from unmask.cli.ui.console import console, explain_interrupt, print_line
from unmask.cli.ui.progress import progress
from unmask.core.io.atomic import write_json, write_text
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.evaluation.suite import (
    SuiteRun,
    TaskScores,
    check_readable,
    collect_scores,
    describe,
    is_suite_run_finished,
    mean,
    plan_runs,
)
from unmask.evaluation.suite_file import SuiteTask
from unmask.reports.pages.suite import SuiteRow, suite_page
from unmask.reports.text.score_format import format_mean_std
from unmask.train.rundir.folder import check_same_run, lock_run, start_or_resume

RESULTS, PAGE = "results.json", "report.html"


@dataclass(frozen=True, slots=True)
class SuiteEvaluation:
    """A network, tasks and seeds."""

    source: Path
    tasks: Sequence[SuiteTask]
    options: Sequence[str]
    """What every run is told."""
    seeds: int
    scratch: bool
    out: Path
    max_parallel: int = 0
    """Runs that share the machine; 0: one for each core."""

    def run(self) -> None:
        """Make the runs that are missing, then print the table."""
        attempts = plan_runs(self.tasks, self.seeds, self.scratch)
        check_readable(self.tasks)
        with lock_run(self.out), explain_interrupt(self.out):
            description = describe(self.tasks, self.options, self._source_digest())
            check_same_run(self.out, description)
            start_or_resume(self.out, description)
            self._run_missing([one for one in attempts if not is_suite_run_finished(one, self.out)], len(attempts))
            found = collect_scores(attempts, self.out)
            write_json(self.out / RESULTS, {"tasks": [_nan_to_null(asdict(one)) for one in found]})
            write_text(self.out / PAGE, suite_page(self.source.resolve().name, [_suite_row(one) for one in found]))
            print_suite(found)
            print_line(
                f"The figures are in {self.out / RESULTS} and {self.out / PAGE}, each run in {self.out / 'runs'}."
            )

    def _source_digest(self) -> dict[str, str]:
        """The network, by its weights."""
        from unmask.finetuning.finetune import model_digest
        from unmask.loading.open_model import open_model

        opened = open_model(self.source)
        return {"name": opened.name, "weights": model_digest(opened.model), "tokenizer": opened.tokenizer.digest}

    def _run_missing(self, missing: Sequence[SuiteRun], total: int) -> None:
        """Work off runs, several at once; the first that fails stops all. Then the files without truth."""
        workers = min(self.max_parallel or os.cpu_count() or 1, max(len(missing), 1))
        with progress(f"{total} runs, {workers} at once", total) as tick:

            def watch(running: Sequence[Job]) -> None:
                left = sum(not is_suite_run_finished(one, self.out) for one in missing)
                names = (str(child.folder.relative_to(self.out / "runs")) for child in running[:2])
                tick(total - left, ", ".join(names))

            children = JobRunner(workers, watch)
            watch(())
            children.run(self._job(one) for one in missing)
            children.run(self._predict_tests())

    def _job(self, attempt: SuiteRun) -> Job:
        return Job(tuple(attempt.command_args(self.source, self.out, self.options)), self.out / attempt.folder_name)

    def _predict_tests(self) -> Iterator[Job]:
        """Answers to the files whose truth is not known, by the first seed."""
        for task in self.tasks:
            run, answers = self.out / "runs" / task.name / "tuned-0", self.out / "submissions" / f"{task.name}.jsonl"
            if not answers.exists():
                for test in task.tests:
                    words = ("predict", str(run), str(test), "--out", str(answers))
                    yield Job(words, run.parent / "test")


def print_suite(found: Sequence[TaskScores]) -> None:
    """The table of a suite."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("score")
    for name in ("pre-trained", "from scratch", "gain", "chance"):
        table.add_column(name, justify="right")
    for one in found:
        gain = f"{100 * one.gain:+.1f}{'' if one.is_separated else ' ~'}" if one.scratch else ""
        sides = (format_mean_std(one.pretrained), format_mean_std(one.scratch))
        table.add_row(one.task, METRIC_NAMES.get(one.metric, one.metric), *sides, gain, _to_percent(one.baseline))
    if len(found) > 1:
        table.add_row(
            "mean", "", *(_to_percent(mean([mean(side) for side in sides])) for sides in _sides(found)), "", ""
        )
    console().print(table)
    if any(one.scratch and not one.is_separated for one in found):
        print_line("~ the seeds of both sides overlap: this difference may be chance.")


def _suite_row(one: TaskScores) -> SuiteRow:
    return SuiteRow(one.task, METRIC_NAMES.get(one.metric, one.metric), one.pretrained, one.scratch, one.baseline)


def _sides(found: Sequence[TaskScores]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [one.pretrained for one in found], [one.scratch for one in found]


def _to_percent(score: float) -> str:
    return f"{100 * score:.1f}" if math.isfinite(score) else ""


def _nan_to_null(said: dict[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in said.items()
    }
