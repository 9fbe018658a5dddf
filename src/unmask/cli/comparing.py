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

from unmask.cli.children import Child, Children
from unmask.cli.compare_cost import Forecast, forecast, show_forecast
from unmask.cli.compare_parts import Contest, check_alone
from unmask.cli.compare_table import show, told_page
from unmask.cli.pretraining import suited_micro
from unmask.cli.progress import Tick, progress
from unmask.cli.terminal import interruptible, say
from unmask.evaluate.suite import check_readable
from unmask.lab.arms import NETWORK, Entry
from unmask.lab.curves import keep_points, point_steps, share_done
from unmask.lab.results import Reader, Results
from unmask.report.compare_page import compare_page
from unmask.shards.files import write_json, write_text
from unmask.train.folder import begin, check, finished, hold
from unmask.train.record import RECORD, read_record
from unmask.train.run import run_here

RESULTS, PAGE = "compare.json", "compare.html"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A contest in a folder."""

    contest: Contest
    out: Path
    at_once: int = 0
    """Tunes that share the machine; 0: one for each core."""
    pretrain_at_once: int = 1

    def work(self, dry_run: bool = False) -> None:
        """Make the runs that are missing, then print the table."""
        contest = self.contest
        check_alone(contest.budget["hours"], self.pretrain_at_once)
        for arm in contest.arms:
            _ = contest.parts(arm, 0).budget  # one budget, before anything takes time
        check_readable(contest.tasks)
        say(contest.vocabulary(), beside=True)
        description = contest.description()
        if not dry_run:
            check(self.out, description)
            self._check_finished()
        missing = list(self._missing())
        costs = forecast(contest, {entry.arm for entry in missing})
        tunes = sum(1 for entry in contest.entries for _ in self.tunes(entry))
        show_forecast(contest, costs, missing, tunes)
        if dry_run:
            return
        with hold(self.out), interruptible(self.out):
            begin(self.out, description)
            try:
                with progress("comparing", costs.total(contest)) as tick:
                    self._make(_Board(self, costs, tick))
            finally:  # who stops it in the middle, or is stopped by a run that fails, sees what there is
                show(self._tell())
            say(f"The figures are in {self.out / RESULTS} and {self.out / PAGE}, each run in {self.out / 'members'}.")

    def _missing(self) -> Iterator[Entry]:
        """The networks that are not finished."""
        return (entry for entry in self.contest.entries if not finished(self.out / entry.place / NETWORK))

    def _check_finished(self) -> None:
        """Refuse to count a finished network that was made in another way; unfinished ones see to it themselves."""
        for entry in self.contest.entries:
            if finished(folder := self.out / entry.place / NETWORK):
                check(folder, self.contest.parts(entry.arm, entry.seed).description())

    def _make(self, board: _Board) -> None:
        """Seed by seed: all networks, then everything that is tuned from them."""
        pretrain = Children(self.pretrain_at_once, board.watch)
        tune = Children(self.at_once or os.cpu_count() or 1, board.watch)
        size = self.pretrain_at_once
        for found in self.contest.rounds(size):
            for some in (found[at : at + size] for at in range(0, len(found), size)):
                pretrain.work(self._networks(some))
                for entry in some:
                    self._keep_points(entry)
            tune.work(child for entry in found for child in self.tunes(entry))
            self._tell()

    def _networks(self, some: Sequence[Entry]) -> Iterator[Child]:
        for entry in some:
            folder = self.out / entry.place / NETWORK
            if not finished(folder):
                words = [*self.contest.pretrain_words(), *self._modest(entry)]
                yield Child(tuple(entry.pretrain(self.out, words)), folder)

    def _modest(self, entry: Entry) -> list[str]:
        """Runs that share a device share its memory."""
        if self.pretrain_at_once == 1:
            return []
        recipe = self.contest.parts(entry.arm, entry.seed).recipe
        run = run_here(self.contest.device, self.contest.precision, self.contest.graphs, self.contest.plain)
        run = replace(run, compile=self.contest.compile)
        return ["--micro-tokens", str(suited_micro(recipe, run, self.pretrain_at_once))]

    def _keep_points(self, entry: Entry) -> None:
        places = [self.out / entry.point(number) for number in range(1, self.contest.points)]
        if not all((place / NETWORK).exists() for place in places):
            record = list(read_record(self.out / entry.place / NETWORK / RECORD))
            keep_points(self.out / entry.place, places, point_steps(record, self.contest.points))

    def tunes(self, entry: Entry) -> Iterator[Child]:
        """What is to be tuned from a network, at its end and at earlier points, and is not finished."""
        folders = [self.out / entry.place, *(self.out / entry.point(k) for k in range(1, self.contest.points))]
        words = (*self.contest.tuning, *self.contest.logistics)
        for number, folder in enumerate(folders):
            scratch = not number and entry.arm.name in self.contest.from_scratch
            for attempt in entry.attempts(self.contest.tasks, scratch):
                if not finished(folder / attempt.place):
                    yield Child(tuple(attempt.words(folder / NETWORK, folder, words)), folder / attempt.place)

    def _tell(self) -> Results:
        """Write what there is so far."""
        contest = self.contest
        reader = Reader(self.out, contest.tasks, contest.meters, contest.points, contest.from_scratch)
        results = reader.read(contest.arms, contest.entries)
        page = told_page(results, contest)
        differs = {one.name: [list(place) for place in one.places] for one in page.differs}
        told = {**results.told(), "differs": differs, "from_scratch": sorted(contest.from_scratch)}
        write_json(self.out / RESULTS, {**contest.description(), "seeds": contest.seeds, **told})
        write_text(self.out / PAGE, compare_page(page))
        return results


@dataclass(frozen=True, slots=True)
class _Board:
    """Says how far a comparison is, in the seconds that its runs were expected to take."""

    comparison: Comparison
    costs: Forecast
    tick: Tick

    def watch(self, running: Sequence[Child]) -> None:
        """A look at everything that is finished, and at what is running."""
        done = sum(self._done(entry) for entry in self.comparison.contest.entries)
        names = ", ".join(str(child.folder.relative_to(self.comparison.out / "members")) for child in running[:2])
        self.tick(done, names)

    def _done(self, entry: Entry) -> float:
        network = self.comparison.out / entry.place / NETWORK
        waiting = sum(1 for _ in self.comparison.tunes(entry)) if finished(network) else 0
        whole = self.costs.tunes(self.comparison.contest, entry)
        tuned = whole - waiting * self.costs.tune if finished(network) else 0.0
        return self.costs.networks[entry.arm.name] * share_done(network) + max(tuned, 0.0)
