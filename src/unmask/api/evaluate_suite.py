"""Evaluation on a suite: fine-tune a model on every task with several seeds, as parallel processes that resume."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from unmask.api.models import Model
from unmask.api.subprocess_jobs import Job, JobRunner
from unmask.core.io.atomic import write_json, write_text
from unmask.core.reporter import SILENT, Reporter
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.evaluation.suite import (
    SuiteRun,
    TaskScores,
    check_readable,
    collect_scores,
    describe,
    is_suite_run_finished,
    plan_runs,
)
from unmask.evaluation.suite_file import SuiteTask, read_suite
from unmask.reports.pages.suite import SuiteRow, suite_page
from unmask.train.rundir.folder import check_same_run, lock_run, start_or_resume

RESULTS, PAGE = "results.json", "report.html"


def evaluate(
    model: Model | Path | str,
    suite: Path | str,
    *,
    out: Path | str,
    seeds: int = 3,
    tasks: Sequence[str] = (),
    scratch: bool = True,
    options: Mapping[str, object] | None = None,
    max_parallel: int = 0,
    reporter: Reporter = SILENT,
) -> list[TaskScores]:
    """Fine-tune a model on every task of a folder with several seeds; the same call resumes in `out`.

    `scratch` also fine-tunes random weights, as a baseline. `options` are those of `unmask finetune`, such as
    {"epochs": 3, "lr": 1e-4, "method": "lora"}. Each run is a process of its own; 0: one per core.
    """
    words = [word for name, value in (options or {}).items() for word in (f"--{name.replace('_', '-')}", str(value))]
    source = model.folder if isinstance(model, Model) else Path(model)
    found = read_suite(Path(suite), tuple(tasks))
    return SuiteEvaluation(source, found, words, seeds, scratch, Path(out), max_parallel, reporter).run()


@dataclass(frozen=True, slots=True)
class SuiteEvaluation:
    """A network, tasks and seeds."""

    source: Path
    tasks: Sequence[SuiteTask]
    options: Sequence[str]
    """Command-line options of every run."""
    seeds: int
    scratch: bool
    out: Path
    max_parallel: int = 0
    """Runs that share the machine; 0: one for each core."""

    reporter: Reporter = SILENT

    def run(self) -> list[TaskScores]:
        """Run the missing fine-tunes; return the scores of every task."""
        attempts = plan_runs(self.tasks, self.seeds, self.scratch)
        check_readable(self.tasks)
        with lock_run(self.out):
            description = describe(self.tasks, self.options, self._source_digest())
            check_same_run(self.out, description)
            start_or_resume(self.out, description)
            self._run_missing([one for one in attempts if not is_suite_run_finished(one, self.out)], len(attempts))
            found = collect_scores(attempts, self.out)
            write_json(self.out / RESULTS, {"tasks": [_nan_to_null(asdict(one)) for one in found]})
            write_text(self.out / PAGE, suite_page(self.source.resolve().name, [_suite_row(one) for one in found]))
        return list(found)

    def _source_digest(self) -> dict[str, str]:
        """The network, by its weights."""
        from unmask.finetuning.finetune import model_digest
        from unmask.loading.open_model import open_model

        opened = open_model(self.source)
        return {"name": opened.name, "weights": model_digest(opened.model), "tokenizer": opened.tokenizer.digest}

    def _run_missing(self, missing: Sequence[SuiteRun], total: int) -> None:
        """Work off runs, several at once; the first that fails stops all. Then the files without truth."""
        workers = min(self.max_parallel or os.cpu_count() or 1, max(len(missing), 1))
        with self.reporter.progress(f"{total} runs, {workers} at once", total) as tick:

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


def _suite_row(one: TaskScores) -> SuiteRow:
    return SuiteRow(one.task, METRIC_NAMES.get(one.metric, one.metric), one.pretrained, one.scratch, one.baseline)


def _nan_to_null(said: dict[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in said.items()
    }
