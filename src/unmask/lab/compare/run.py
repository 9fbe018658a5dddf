"""The flow of `compare`: check, estimate, pre-train and tune seed by seed, then tell.

What arrives: a contest and a folder. What leaves: finished runs, `compare.json`, `compare.html` and a table.
What never happens here: a run that is made twice, or lost. Each has its own folder and is the command that a user would
type, which goes on where it was; what is finished is not started again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unmask.api.pretrain import microbatch_for
from unmask.api.subprocess_jobs import Job, JobRunner
from unmask.cli.ui.compare_table import comparison_report, print_comparison
from unmask.cli.ui.console import explain_interrupt, print_line
from unmask.cli.ui.progress import ProgressCallback, progress
from unmask.core.io.atomic import write_json, write_text
from unmask.evaluation.suite import check_readable
from unmask.lab.compare.arms import NETWORK, ArmRun
from unmask.lab.compare.contest import ComparisonSpec, check_alone
from unmask.lab.compare.cost import CostForecast, forecast_cost, print_forecast
from unmask.lab.compare.curves import fraction_done, keep_points, point_steps
from unmask.lab.compare.results import Results, ResultsReader
from unmask.reports.pages.compare import compare_page
from unmask.train.run_config import default_run_config
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, start_or_resume
from unmask.train.rundir.metrics_log import RECORD, read_record

RESULTS, PAGE = "compare.json", "compare.html"


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """A contest in a folder."""

    spec: ComparisonSpec
    out: Path
    max_finetunes: int = 0
    """Tunes that share the machine; 0: one for each core."""
    max_pretrainings: int = 1

    def run(self, dry_run: bool = False) -> None:
        """Make the runs that are missing, then print the table."""
        contest = self.spec
        check_alone(contest.budget["hours"], self.max_pretrainings)
        for arm in contest.arms:
            _ = contest.setup(arm, 0).budget  # one budget, before anything takes time
        check_readable(contest.tasks)
        print_line(contest.describe_vocabulary(), stderr=True)
        description = contest.description()
        if not dry_run:
            check_same_run(self.out, description)
            self._check_finished()
        missing = list(self._missing())
        costs = forecast_cost(contest, {entry.arm for entry in missing})
        tunes = sum(1 for entry in contest.entries for _ in self.finetune_jobs(entry))
        print_forecast(contest, costs, missing, tunes)
        if dry_run:
            return
        with lock_run(self.out), explain_interrupt(self.out):
            start_or_resume(self.out, description)
            try:
                with progress("comparing", costs.total_seconds(contest)) as tick:
                    self._run_missing(_ComparisonProgress(self, costs, tick))
            finally:  # who stops it in the middle, or is stopped by a run that fails, sees what there is
                print_comparison(self._write_results())
            print_line(
                f"The figures are in {self.out / RESULTS} and {self.out / PAGE}, each run in {self.out / 'members'}."
            )

    def _missing(self) -> Iterator[ArmRun]:
        """The networks that are not finished."""
        return (entry for entry in self.spec.entries if not is_finished(self.out / entry.folder / NETWORK))

    def _check_finished(self) -> None:
        """Refuse to count a finished network that was made in another way; unfinished ones see to it themselves."""
        for entry in self.spec.entries:
            if is_finished(folder := self.out / entry.folder / NETWORK):
                check_same_run(folder, self.spec.setup(entry.arm, entry.seed).description())

    def _run_missing(self, board: _ComparisonProgress) -> None:
        """Seed by seed: all networks, then everything that is tuned from them."""
        pretrain = JobRunner(self.max_pretrainings, board.update)
        tune = JobRunner(self.max_finetunes or os.cpu_count() or 1, board.update)
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
        """Runs that share a device share its memory."""
        if self.max_pretrainings == 1:
            return []
        recipe = self.spec.setup(entry.arm, entry.seed).recipe
        run = default_run_config(self.spec.device, self.spec.precision, self.spec.cuda_graphs, self.spec.no_kernels)
        run = replace(run, compile=self.spec.compile)
        return ["--micro-tokens", str(microbatch_for(recipe, run, self.max_pretrainings))]

    def _keep_points(self, entry: ArmRun) -> None:
        places = [self.out / entry.point_folder(number) for number in range(1, self.spec.points)]
        if not all((place / NETWORK).exists() for place in places):
            record = list(read_record(self.out / entry.folder / NETWORK / RECORD))
            keep_points(self.out / entry.folder, places, point_steps(record, self.spec.points))

    def finetune_jobs(self, entry: ArmRun) -> Iterator[Job]:
        """What is to be tuned from a network, at its end and at earlier points, and is not finished."""
        folders = [self.out / entry.folder, *(self.out / entry.point_folder(k) for k in range(1, self.spec.points))]
        words = (*self.spec.finetune_args, *self.spec.machine_args)
        for number, folder in enumerate(folders):
            scratch = not number and entry.arm.name in self.spec.from_scratch
            for attempt in entry.suite_runs(self.spec.tasks, scratch):
                if not is_finished(folder / attempt.folder_name):
                    yield Job(
                        tuple(attempt.command_args(folder / NETWORK, folder, words)), folder / attempt.folder_name
                    )

    def _write_results(self) -> Results:
        """Write what there is so far."""
        contest = self.spec
        reader = ResultsReader(self.out, contest.tasks, contest.meters, contest.points, contest.from_scratch)
        results = reader.read(contest.arms, contest.entries)
        page = comparison_report(results, contest)
        differs = {one.name: [list(place) for place in one.changes] for one in page.differences}
        told = {**results.to_json(), "differs": differs, "from_scratch": sorted(contest.from_scratch)}
        write_json(self.out / RESULTS, {**contest.description(), "seeds": contest.seeds, **told})
        write_text(self.out / PAGE, compare_page(page))
        return results


@dataclass(frozen=True, slots=True)
class _ComparisonProgress:
    """Says how far a comparison is, in the seconds that its runs were expected to take."""

    comparison: ComparisonRun
    costs: CostForecast
    tick: ProgressCallback

    def update(self, running: Sequence[Job]) -> None:
        """A look at everything that is finished, and at what is running."""
        done = sum(self._done_seconds(entry) for entry in self.comparison.spec.entries)
        names = ", ".join(str(child.folder.relative_to(self.comparison.out / "members")) for child in running[:2])
        self.tick(done, names)

    def _done_seconds(self, entry: ArmRun) -> float:
        network = self.comparison.out / entry.folder / NETWORK
        waiting = sum(1 for _ in self.comparison.finetune_jobs(entry)) if is_finished(network) else 0
        whole = self.costs.entry_seconds(self.comparison.spec, entry)
        tuned = whole - waiting * self.costs.finetune_seconds if is_finished(network) else 0.0
        return self.costs.network_seconds[entry.arm.name] * fraction_done(network) + max(tuned, 0.0)
