"""The flow of `landscape`: tune four times, measure, write, tell.

What arrives: a tuning, what the second run is, how closely to look. What leaves: a folder with the runs, the heights,
`landscape.json`, `landscape.html`, and a table.
What never happens here: learning or measuring; see `unmask.evaluate.landscape` and its parts.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from unmask.cli.progress import progress
from unmask.cli.terminal import console, interruptible, say
from unmask.cli.watching import counting
from unmask.errors import InputError
from unmask.evaluate.landscape import Ground
from unmask.evaluate.landscape_runs import Walk, Walked, begun_like, shared_parameters
from unmask.evaluate.landscape_view import View
from unmask.evaluate.landscape_words import table, verdict
from unmask.report.landscape_page import landscape_page
from unmask.report.landscape_record import Landscape, Side, Yardstick
from unmask.shards.files import write_json, write_text
from unmask.train.folder import begin, check, hold
from unmask.train.learner import Learner
from unmask.train.record import Line
from unmask.train.run import Run
from unmask.tune.course import Labelled
from unmask.tune.job import Job, read_job
from unmask.tune.output import Kind
from unmask.tune.start import Origin
from unmask.tune.tuning import Tuning
from unmask.tune.wish import Wish

NUMBERS, PAGE, HEIGHTS = "landscape.json", "landscape.html", "heights"


@dataclass(frozen=True, slots=True, eq=False)
class Second:
    """The run that the second axis leads to: other rows, or the same in another order."""

    job: Job
    seed: int
    told: str

    def alike(self, job: Job) -> bool:
        """Whether it asks the same, so that its head can be compared."""
        return bool(self.job.output == job.output)


def read_second(written: str, job: Job, wish: Wish, seed: int) -> Second:
    """A seed, or a task file."""
    try:
        other = int(written)
    except ValueError:
        path = Path(written)
        if not path.exists():
            raise InputError(f"--second needs another seed or another task file; there is no file {path}.") from None
        return Second(read_job(path, None, wish, seed), seed, path.name)
    if other == seed:
        raise InputError(f"--second needs another seed than --seed {seed}: two runs that are the same span no plane.")
    return Second(job, other, f"seed {other}")


@dataclass(frozen=True, slots=True, eq=False)
class Landscaping:
    """Everything that is to be done."""

    tuning: Tuning
    second: Second
    view: View
    run: Run
    out: Path

    def work(self) -> None:
        """Train what is missing, measure what is missing, then tell."""
        with hold(self.out), interruptible(self.out):
            description = self._describe()
            check(self.out, description)
            for sentence in self.tuning.job.told:
                say(sentence, beside=True)
            courses = self._lay_out()
            begin(self.out, description)  # only now: a row that cannot be encoded leaves no folder behind
            grounds = [self._ground(origin, *courses) for origin in Origin]
            pretrained, scratch = map(_survey, grounds)
            found = self._found(pretrained, scratch, courses[0])
            write_json(self.out / NUMBERS, _plain(asdict(found)))
            write_text(self.out / PAGE, landscape_page(found, tuple(table(found)), tuple(verdict(found))))
            show(found)
            say(f"The page is {self.out / PAGE}, all numbers are in {self.out / NUMBERS}.")

    def _describe(self) -> dict[str, Any]:
        """What decides the runs. How closely one looks may change."""
        other = {"seed": self.second.seed, "files": [list(file) for file in self.second.job.files]}
        return {**self.tuning.describe(), "kind": "landscape", "second": other, "points": self.run.trials}

    def _lay_out(self) -> tuple[Labelled, Labelled]:
        """The rows of both runs."""
        job, other = self.tuning.job, self.second.job
        with progress("encoding", len(job.learned) + len(job.judged)) as tick:
            course = self.tuning.lay_out(tick)
        if other is job:
            return course, replace(course, seed=self.second.seed)
        return course, replace(self.tuning, job=other).lay_out()

    def _ground(self, origin: Origin, course: Labelled, other: Labelled) -> Ground:
        """Two runs from one start."""
        side, alike = self._folder(origin), self.second.alike(self.tuning.job)
        walks = [
            Walk(self.tuning, one, origin, self.out / "runs" / f"{side}-{name}")
            for one, name in ((course, "first"), (other, "second"))
        ]
        start = walks[0].start()
        first = self._walk(walks[0], walks[0].start(), self.run)
        second = self._walk(walks[1], begun_like(walks[1].start(), start, alike), replace(self.run, trials=1))
        shared = shared_parameters(start, alike)
        where = self.out / HEIGHTS / side
        return Ground(origin.value, first, second, shared, start, course, self.view, self.run.device, where)

    def _walk(self, walk: Walk, learner: Learner, run: Run) -> Walked:
        if walk.done:
            return walk.go(learner, run)
        with progress(f"tuning {walk.folder.name.replace('-', ' ')}", walk.steps) as tick:
            return walk.go(learner, run, [counting(tick, _loss)])

    def _found(self, pretrained: Side, scratch: Side, course: Labelled) -> Landscape:
        tuning, how = self.tuning, self.tuning.settings
        judged_by = Yardstick.LOSS if tuning.job.output.kind is Kind.REGRESS else Yardstick.ERROR
        facts = (
            ("network", tuning.source),
            ("task", f"{tuning.job.learned.name}: {len(course.learned):,} to learn from, {len(course.judged):,} dev"),
            ("tuning", f"{how.epochs:g} epochs, rate {how.rate:g}, batch {how.batch}, rows of {how.length}"),
            ("seeds", f"first run {how.seed}, second run: {self.second.told}"),
            ("lines and numbers", f"{_fewer(self.view.rows, course)}, dropout off, float32"),
            ("maps", f"{self.view.grid} × {self.view.grid} places, {_fewer(self.view.map_rows, course)}"),
        )
        return Landscape(f"{tuning.source} on {tuning.job.learned.name}", facts, judged_by, pretrained, scratch)

    @staticmethod
    def _folder(origin: Origin) -> str:
        return "scratch" if origin is Origin.SCRATCH else "pretrained"


def _survey(ground: Ground) -> Side:
    """Measure one side."""
    done = itertools.count(1)
    with progress(f"measuring {ground.name}", ground.places) as tick:
        return ground.survey(lambda: tick(next(done)))


def show(found: Landscape) -> None:
    """The table, and what it says."""
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("")
    for side in found.sides:
        shown.add_column(side.name, justify="right")
    for row in table(found):
        shown.add_row(*row)
    console().print(shown)
    for sentence in verdict(found):
        say(sentence)


def _fewer(rows: int, course: Labelled) -> str:
    """How many rows there really are."""
    return f"{min(rows, len(course.learned)):,} training rows, {min(rows, len(course.judged)):,} dev rows"


def _plain(value: object) -> object:
    """A value for JSON, which has no word for what is not a finite number."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def _loss(line: Line) -> str:
    """What is said of a step."""
    return "".join(f"loss {loss:.3f}" for loss in line["loss"].values()) if line["kind"] == "step" else ""
