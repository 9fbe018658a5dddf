"""The flow of `landscape`: tune four times, measure, write, tell.

What arrives: a tuning, what the second run is, how closely to look. What leaves: a folder with the runs, the heights,
`landscape.json`, `landscape.html`, and a table.
What never happens here: learning or measuring; see `unmask.lab.landscape.survey` and its parts.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from unmask.cli.ui.console import console, explain_interrupt, print_line
from unmask.cli.ui.progress import progress
from unmask.cli.ui.training_display import step_counter
from unmask.core.errors import InputError
from unmask.core.io.atomic import write_json, write_text
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTune
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.task_data import TaskData, load_task_data
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.lab.landscape.config import LandscapeConfig
from unmask.lab.landscape.survey import LossSurface
from unmask.lab.landscape.trajectories import FinishedRun, TrackedFineTune, copy_start, shared_parameters
from unmask.lab.landscape.verdict import comparison_rows, describe_verdict
from unmask.reports.landscape_results import DevMetric, Landscape, LandscapeSide
from unmask.reports.pages.landscape import landscape_page
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import RunConfig
from unmask.train.rundir.folder import check_same_run, lock_run, start_or_resume
from unmask.train.rundir.metrics_log import LogLine

NUMBERS, PAGE, HEIGHTS = "landscape.json", "landscape.html", "heights"


@dataclass(frozen=True, slots=True, eq=False)
class SecondAxis:
    """The run that the second axis leads to: other rows, or the same in another order."""

    job: TaskData
    seed: int
    description: str

    def is_same_task(self, job: TaskData) -> bool:
        """Whether it asks the same, so that its head can be compared."""
        return bool(self.job.task == job.task)


def read_second_axis(written: str, job: TaskData, options: TaskOptions, seed: int) -> SecondAxis:
    """A seed, or a task file."""
    try:
        other = int(written)
    except ValueError:
        path = Path(written)
        if not path.exists():
            raise InputError(f"--second needs another seed or another task file; there is no file {path}.") from None
        return SecondAxis(load_task_data(path, None, options, seed), seed, path.name)
    if other == seed:
        raise InputError(f"--second needs another seed than --seed {seed}: two runs that are the same span no plane.")
    return SecondAxis(job, other, f"seed {other}")


@dataclass(frozen=True, slots=True, eq=False)
class LandscapeStudy:
    """Everything that is to be done."""

    finetune: FineTune
    second: SecondAxis
    config: LandscapeConfig
    run: RunConfig
    out: Path

    def execute(self) -> None:
        """Train what is missing, measure what is missing, then tell."""
        with lock_run(self.out), explain_interrupt(self.out):
            description = self._describe()
            check_same_run(self.out, description)
            for sentence in self.finetune.data.notes:
                print_line(sentence, stderr=True)
            courses = self._encode()
            start_or_resume(self.out, description)  # only now: a row that cannot be encoded leaves no folder behind
            grounds = [self._surface(origin, *courses) for origin in StartFrom]
            pretrained, scratch = map(_measure, grounds)
            found = self._to_landscape(pretrained, scratch, courses[0])
            write_json(self.out / NUMBERS, _nan_to_null(asdict(found)))
            write_text(
                self.out / PAGE, landscape_page(found, tuple(comparison_rows(found)), tuple(describe_verdict(found)))
            )
            print_landscape(found)
            print_line(f"The page is {self.out / PAGE}, all numbers are in {self.out / NUMBERS}.")

    def _describe(self) -> dict[str, Any]:
        """What decides the runs. How closely one looks may change."""
        other = {"seed": self.second.seed, "files": [list(file) for file in self.second.job.files]}
        return {**self.finetune.describe(), "kind": "landscape", "second": other, "points": self.run.num_evals}

    def _encode(self) -> tuple[EpochBatches, EpochBatches]:
        """The rows of both runs."""
        job, other = self.finetune.data, self.second.job
        with progress("encoding", len(job.train) + len(job.dev)) as tick:
            course = self.finetune.encode(tick)
        if other is job:
            return course, replace(course, seed=self.second.seed)
        return course, replace(self.finetune, data=other).encode()

    def _surface(self, origin: StartFrom, course: EpochBatches, other: EpochBatches) -> LossSurface:
        """Two runs from one start."""
        side, alike = self._folder(origin), self.second.is_same_task(self.finetune.data)
        walks = [
            TrackedFineTune(self.finetune, one, origin, self.out / "runs" / f"{side}-{name}")
            for one, name in ((course, "first"), (other, "second"))
        ]
        start = walks[0].build_model()
        first = self._finetune(walks[0], walks[0].build_model(), self.run)
        second = self._finetune(
            walks[1], copy_start(walks[1].build_model(), start, alike), replace(self.run, num_evals=1)
        )
        shared = shared_parameters(start, alike)
        where = self.out / HEIGHTS / side
        return LossSurface(origin.value, first, second, shared, start, course, self.config, self.run.device, where)

    def _finetune(self, walk: TrackedFineTune, learner: MultiHeadModel, run: RunConfig) -> FinishedRun:
        if walk.is_finished:
            return walk.train(learner, run)
        with progress(f"tuning {walk.folder.name.replace('-', ' ')}", walk.num_steps) as tick:
            return walk.train(learner, run, [step_counter(tick, _loss)])

    def _to_landscape(self, pretrained: LandscapeSide, scratch: LandscapeSide, course: EpochBatches) -> Landscape:
        tuning, how = self.finetune, self.finetune.settings
        judged_by = DevMetric.LOSS if tuning.data.task.task_type is TaskType.REGRESS else DevMetric.ERROR
        facts = (
            ("network", tuning.source),
            ("task", f"{tuning.data.train.name}: {len(course.train):,} to learn from, {len(course.dev):,} dev"),
            ("tuning", f"{how.epochs:g} epochs, rate {how.lr:g}, batch {how.batch_size}, rows of {how.max_length}"),
            ("seeds", f"first run {how.seed}, second run: {self.second.description}"),
            ("lines and numbers", f"{_count_rows(self.config.rows, course)}, dropout off, float32"),
            ("maps", f"{self.config.grid} × {self.config.grid} places, {_count_rows(self.config.map_rows, course)}"),
        )
        return Landscape(f"{tuning.source} on {tuning.data.train.name}", facts, judged_by, pretrained, scratch)

    @staticmethod
    def _folder(origin: StartFrom) -> str:
        return "scratch" if origin is StartFrom.SCRATCH else "pretrained"


def _measure(ground: LossSurface) -> LandscapeSide:
    """Measure one side."""
    done = itertools.count(1)
    with progress(f"measuring {ground.name}", ground.num_points) as tick:
        return ground.measure(lambda: tick(next(done)))


def print_landscape(found: Landscape) -> None:
    """The table, and what it says."""
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("")
    for side in found.sides:
        shown.add_column(side.name, justify="right")
    for row in comparison_rows(found):
        shown.add_row(*row)
    console().print(shown)
    for sentence in describe_verdict(found):
        print_line(sentence)


def _count_rows(rows: int, course: EpochBatches) -> str:
    """How many rows there really are."""
    return f"{min(rows, len(course.train)):,} training rows, {min(rows, len(course.dev)):,} dev rows"


def _nan_to_null(value: object) -> object:
    """A value for JSON, which has no word for what is not a finite number."""
    if isinstance(value, dict):
        return {name: _nan_to_null(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_nan_to_null(inner) for inner in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def _loss(line: LogLine) -> str:
    """What is said of a step."""
    return "".join(f"loss {loss:.3f}" for loss in line["loss"].values()) if line["kind"] == "step" else ""
