"""The flow of `unmask landscape`: four fine-tuning runs, their measurement, `landscape.json` and the page."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unmask.core.errors import InputError
from unmask.core.io.atomic import write_json, write_text
from unmask.core.reporter import SILENT, Reporter
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
from unmask.train.rundir.run_writer import LogLine, step_counter

NUMBERS, PAGE, HEIGHTS = "landscape.json", "landscape.html", "heights"


@dataclass(frozen=True, slots=True, eq=False)
class SecondAxis:
    """The run that defines the second axis: other rows, or the same rows in another order."""

    data: TaskData
    seed: int
    description: str

    def is_same_task(self, job: TaskData) -> bool:
        """Whether both runs have the same task, so that their heads can be compared."""
        return bool(self.data.task == job.task)


def read_second_axis(written: str, job: TaskData, options: TaskOptions, seed: int) -> SecondAxis:
    """Parse --second: a seed or a task file."""
    try:
        other = int(written)
    except ValueError:
        path = Path(written)
        if not path.exists():
            raise InputError(
                f"--second needs another seed or another task file; there is no file {path}. Give one of them."
            ) from None
        return SecondAxis(load_task_data(path, None, options, seed), seed, path.name)
    if other == seed:
        raise InputError(
            f"--second needs another seed than --seed {seed}: two equal runs span no plane. Take another seed."
        )
    return SecondAxis(job, other, f"seed {other}")


@dataclass(frozen=True, slots=True, eq=False)
class LandscapeStudy:
    """A landscape to be made: four runs, their measurement and the page."""

    finetune: FineTune
    second: SecondAxis
    config: LandscapeConfig
    run: RunConfig
    out: Path
    reporter: Reporter = SILENT

    def execute(self) -> Landscape:
        """Train and measure what is missing; write the numbers and the page."""
        with lock_run(self.out):
            description = self._describe()
            check_same_run(self.out, description)
            for sentence in self.finetune.data.notes:
                self.reporter.note(sentence)
            first, second = self._encode()
            start_or_resume(self.out, description)  # after encoding, so that an error leaves no folder
            surfaces = [self._surface(origin, first, second) for origin in StartFrom]
            pretrained, scratch = (_measure(surface, self.reporter) for surface in surfaces)
            found = self._to_landscape(pretrained, scratch, first)
            write_json(self.out / NUMBERS, _nan_to_null(asdict(found)))
            write_text(
                self.out / PAGE, landscape_page(found, tuple(comparison_rows(found)), tuple(describe_verdict(found)))
            )
            return found

    def _describe(self) -> dict[str, Any]:
        """What identifies the runs; the resolution of the landscape may change."""
        other = {"seed": self.second.seed, "files": [list(file) for file in self.second.data.files]}
        return {**self.finetune.describe(), "kind": "landscape", "second": other, "points": self.run.num_evals}

    def _encode(self) -> tuple[EpochBatches, EpochBatches]:
        """The encoded rows of both runs."""
        data, other = self.finetune.data, self.second.data
        with self.reporter.progress("encoding", len(data.train) + len(data.dev)) as tick:
            batches = self.finetune.encode(tick)
        if other is data:
            return batches, replace(batches, seed=self.second.seed)
        return batches, replace(self.finetune, data=other).encode()

    def _surface(self, origin: StartFrom, batches: EpochBatches, other: EpochBatches) -> LossSurface:
        """The two runs from one start."""
        side, same_task = self._folder(origin), self.second.is_same_task(self.finetune.data)
        tracked = [
            TrackedFineTune(self.finetune, one, origin, self.out / "runs" / f"{side}-{name}")
            for one, name in ((batches, "first"), (other, "second"))
        ]
        start = tracked[0].build_model()
        first = self._finetune(tracked[0], tracked[0].build_model(), self.run)
        second = self._finetune(
            tracked[1], copy_start(tracked[1].build_model(), start, same_task), replace(self.run, num_evals=1)
        )
        shared = shared_parameters(start, same_task)
        where = self.out / HEIGHTS / side
        return LossSurface(origin.value, first, second, shared, start, batches, self.config, self.run.device, where)

    def _finetune(self, tracked: TrackedFineTune, model: MultiHeadModel, run: RunConfig) -> FinishedRun:
        if tracked.is_finished:
            return tracked.train(model, run)
        with self.reporter.progress(f"fine-tuning {tracked.folder.name.replace('-', ' ')}", tracked.num_steps) as tick:
            return tracked.train(model, run, [step_counter(tick, _loss)])

    def _to_landscape(self, pretrained: LandscapeSide, scratch: LandscapeSide, batches: EpochBatches) -> Landscape:
        finetune, settings = self.finetune, self.finetune.settings
        judged_by = DevMetric.LOSS if finetune.data.task.task_type is TaskType.REGRESSION else DevMetric.ERROR
        rows, lr = f"{settings.batch_size}, rows of {settings.max_length}", f"learning rate {settings.lr:g}"
        facts = (
            ("network", finetune.source),
            ("task", f"{finetune.data.train.name}: {len(batches.train):,} to learn from, {len(batches.dev):,} dev"),
            ("fine-tuning", f"{settings.epochs:g} epochs, {lr}, batch {rows}"),
            ("seeds", f"first run {settings.seed}, second run: {self.second.description}"),
            ("lines and numbers", f"{_count_rows(self.config.rows, batches)}, dropout off, float32"),
            ("maps", f"{self.config.grid} × {self.config.grid} points, {_count_rows(self.config.map_rows, batches)}"),
        )
        return Landscape(f"{finetune.source} on {finetune.data.train.name}", facts, judged_by, pretrained, scratch)

    @staticmethod
    def _folder(origin: StartFrom) -> str:
        return "scratch" if origin is StartFrom.SCRATCH else "pretrained"


def _measure(surface: LossSurface, reporter: Reporter) -> LandscapeSide:
    """Measure one side with a progress bar."""
    done = itertools.count(1)
    with reporter.progress(f"measuring {surface.name}", surface.num_points) as tick:
        return surface.measure(lambda: tick(next(done)))


def _count_rows(rows: int, batches: EpochBatches) -> str:
    """The numbers of rows that were used."""
    return f"{min(rows, len(batches.train)):,} training rows, {min(rows, len(batches.dev)):,} dev rows"


def _nan_to_null(value: object) -> object:
    """Replace NaN and infinity by null."""
    if isinstance(value, dict):
        return {name: _nan_to_null(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_nan_to_null(inner) for inner in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def _loss(line: LogLine) -> str:
    """The loss of a step for the progress bar."""
    return "".join(f"loss {loss:.3f}" for loss in line["loss"].values()) if line["kind"] == "step" else ""
