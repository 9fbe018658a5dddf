"""The flow of `unmask compare`: check, estimate the cost, run what is missing seed by seed, write the results.

Each run is a command of its own in its own folder; it resumes if interrupted and is not repeated if finished.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unmask.api.pretrain import microbatch_for
from unmask.api.pretrain_setup import Preset
from unmask.api.subprocess_jobs import Job, JobRunner
from unmask.core.io.atomic import write_json, write_text
from unmask.core.reporter import ProgressCallback, SilentReporter
from unmask.data.corpus.corpus import Corpus
from unmask.evaluation.suite import check_readable
from unmask.evaluation.suite_file import read_suite
from unmask.lab.compare.arms import NETWORK, ArmRun
from unmask.lab.compare.cost import CostForecast, forecast_cost
from unmask.lab.compare.curves import fraction_done, keep_points, point_steps
from unmask.lab.compare.report import comparison_report
from unmask.lab.compare.results import Results, ResultsReader
from unmask.lab.compare.spec import ComparisonSpec, check_alone
from unmask.reports.pages.compare import compare_page
from unmask.train.run_config import default_run_config
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, start_or_resume
from unmask.train.rundir.run_writer import RECORD, read_record

RESULTS, PAGE = "compare.json", "compare.html"


class ComparisonListener(SilentReporter):
    """Receives the events of a comparison; every method does nothing unless it is overridden."""

    def forecast(self, spec: ComparisonSpec, costs: CostForecast, missing: Sequence[ArmRun], finetunes: int) -> None:
        """The expected cost, before the first run."""

    def finished(self, results: Results, out: Path) -> None:
        """The results so far: at the end, or after an interruption."""


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """A comparison in a folder."""

    spec: ComparisonSpec
    out: Path
    max_finetunes: int = 0
    """Fine-tuning runs in parallel; 0: one per core."""
    max_pretrainings: int = 1
    listener: ComparisonListener = field(default_factory=ComparisonListener)

    def run(self, dry_run: bool = False) -> Results | None:
        """Run what is missing; return the results. A dry run only estimates the cost."""
        spec = self.spec
        check_alone(spec.budget["hours"], self.max_pretrainings)
        for arm in spec.arms:
            _ = spec.setup(arm, 0).budget  # checked before anything takes time
        check_readable(spec.tasks)
        self.listener.note(spec.describe_vocabulary())
        description = spec.description()
        if not dry_run:
            check_same_run(self.out, description)
            self._check_finished()
        missing = list(self._missing())
        costs = forecast_cost(spec, {entry.arm for entry in missing}, self.listener)
        finetunes = sum(1 for entry in spec.entries for _ in self.finetune_jobs(entry))
        self.listener.forecast(spec, costs, missing, finetunes)
        if dry_run:
            return None
        with lock_run(self.out):
            start_or_resume(self.out, description)
            try:
                with self.listener.progress("comparing", costs.total_seconds(spec)) as tick:
                    self._run_missing(_ComparisonProgress(self, costs, tick))
            finally:  # also after an interrupt or a failed run
                self.listener.finished(results := self._write_results(), self.out)
            return results

    def _missing(self) -> Iterator[ArmRun]:
        """The networks that are not finished."""
        return (entry for entry in self.spec.entries if not is_finished(self.out / entry.folder / NETWORK))

    def _check_finished(self) -> None:
        """Refuse a finished network with other settings; unfinished ones are checked when they resume."""
        for entry in self.spec.entries:
            if is_finished(folder := self.out / entry.folder / NETWORK):
                check_same_run(folder, self.spec.setup(entry.arm, entry.seed).description())

    def _run_missing(self, progress_report: _ComparisonProgress) -> None:
        """Run each round: all networks, then their fine-tuning runs."""
        pretrain = JobRunner(self.max_pretrainings, progress_report.update)
        tune = JobRunner(self.max_finetunes or os.cpu_count() or 1, progress_report.update)
        size = self.max_pretrainings
        for found in self.spec.rounds(size):
            for some in (found[at : at + size] for at in range(0, len(found), size)):
                pretrain.run(self._pretraining_jobs(some))
                for entry in some:
                    self._keep_points(entry)
            tune.run(child for entry in found for child in self.finetune_jobs(entry))
            self._write_results()

    def _pretraining_jobs(self, some: Sequence[ArmRun]) -> Iterator[Job]:
        for entry in some:
            folder = self.out / entry.folder / NETWORK
            if not is_finished(folder):
                words = [*self.spec.pretrain_args(), *self._microbatch_args(entry)]
                yield Job(tuple(entry.pretrain_args(self.out, words)), folder)

    def _microbatch_args(self, entry: ArmRun) -> list[str]:
        """A smaller micro-batch for runs that share a device."""
        if self.max_pretrainings == 1:
            return []
        recipe = self.spec.setup(entry.arm, entry.seed).recipe
        run = default_run_config(self.spec.device, self.spec.precision, self.spec.cuda_graphs, self.spec.no_kernels)
        run = replace(run, compile=self.spec.compile)
        return ["--microbatch-tokens", str(microbatch_for(recipe, run, self.max_pretrainings))]

    def _keep_points(self, entry: ArmRun) -> None:
        places = [self.out / entry.point_folder(number) for number in range(1, self.spec.points)]
        if not all((place / NETWORK).exists() for place in places):
            record = list(read_record(self.out / entry.folder / NETWORK / RECORD))
            keep_points(self.out / entry.folder, places, point_steps(record, self.spec.points))

    def finetune_jobs(self, entry: ArmRun) -> Iterator[Job]:
        """The unfinished fine-tuning runs of a network, at its end and at intermediate points."""
        folders = [self.out / entry.folder, *(self.out / entry.point_folder(k) for k in range(1, self.spec.points))]
        words = (*self.spec.finetune_args, *self.spec.machine_args)
        for number, folder in enumerate(folders):
            scratch = not number and entry.arm.name in self.spec.from_scratch
            for suite_run in entry.suite_runs(self.spec.tasks, scratch):
                if not is_finished(folder / suite_run.folder_name):
                    yield Job(
                        tuple(suite_run.command_args(folder / NETWORK, folder, words)), folder / suite_run.folder_name
                    )

    def _write_results(self) -> Results:
        """Write all results so far."""
        spec = self.spec
        reader = ResultsReader(self.out, spec.tasks, spec.meters, spec.points, spec.from_scratch)
        results = reader.read(spec.arms, spec.entries)
        page = comparison_report(results, spec)
        differs = {one.name: [list(place) for place in one.changes] for one in page.differences}
        everything = {**results.to_json(), "differs": differs, "from_scratch": sorted(spec.from_scratch)}
        write_json(self.out / RESULTS, {**spec.description(), "seeds": spec.seeds, **everything})
        write_text(self.out / PAGE, compare_page(page))
        return results


@dataclass(frozen=True, slots=True)
class _ComparisonProgress:
    """Progress of a comparison in expected seconds."""

    comparison: ComparisonRun
    costs: CostForecast
    tick: ProgressCallback

    def update(self, running: Sequence[Job]) -> None:
        """Report the finished part and the names of running jobs."""
        done = sum(self._done_seconds(entry) for entry in self.comparison.spec.entries)
        names = ", ".join(str(child.folder.relative_to(self.comparison.out / "members")) for child in running[:2])
        self.tick(done, names)

    def _done_seconds(self, entry: ArmRun) -> float:
        network = self.comparison.out / entry.folder / NETWORK
        waiting = sum(1 for _ in self.comparison.finetune_jobs(entry)) if is_finished(network) else 0
        whole = self.costs.entry_seconds(self.comparison.spec, entry)
        tuned = whole - waiting * self.costs.finetune_seconds if is_finished(network) else 0.0
        return self.costs.network_seconds[entry.arm.name] * fraction_done(network) + max(tuned, 0.0)


def compare(
    members: Sequence[str],
    corpus: Corpus | Path | str,
    *,
    suite: Path | str,
    out: Path | str,
    size: str = "small",
    steps: int | None = None,
    tokens: int | None = None,
    seeds: int = 3,
    preset: Preset = "published",
    changes: Sequence[str] = (),
    finetune_options: Mapping[str, object] | None = None,
    listener: ComparisonListener | None = None,
) -> Results:
    """Pre-train members with one budget on one corpus, fine-tune each on a suite; the same call resumes in `out`.

    Each run is a process of its own. `changes` are PATH=VALUE, or MEMBER:PATH=VALUE for one member.
    """
    words = [word for name, value in (finetune_options or {}).items() for word in _option(name, value)]
    spec = ComparisonSpec(
        members=tuple(members),
        changes=tuple(changes),
        data=corpus.folder if isinstance(corpus, Corpus) else Path(corpus),
        tasks=read_suite(Path(suite)),
        budget={"steps": steps, "tokens": tokens, "hours": None, "flops": None},
        seeds=seeds,
        size=size,
        preset=preset,
        finetune_args=tuple(words),
    )
    results = ComparisonRun(spec, Path(out), listener=listener or ComparisonListener()).run()
    assert results is not None
    return results


def _option(name: str, value: object) -> tuple[str, str]:
    return f"--{name.replace('_', '-')}", str(value)
