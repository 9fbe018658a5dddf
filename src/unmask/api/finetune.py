"""The flow of `tune`: encode, train, judge, save, tell.

What arrives: a `Tuning` and where it is computed. What leaves: a finished folder and a table of scores.
What never happens here: learning or judging; see `unmask.finetuning`, `unmask.train` and `unmask.evaluation`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from rich.table import Table

from unmask.cli.ui.console import console, explain_interrupt, print_line
from unmask.cli.ui.progress import progress
from unmask.cli.ui.training_display import step_counter
from unmask.evaluation.by_task import fit_thresholds, scores, trivial_baseline
from unmask.evaluation.metrics.classification import METRIC_NAMES, format_scores
from unmask.finetuning.artifact import (
    PREDICTIONS_FILE,
    BaseModelRef,
    FineTunedModel,
    nan_to_null,
    read_task,
    save_finetuned,
    save_predictions,
)
from unmask.finetuning.data.span_qa.predictions import QAPrediction, save_submission
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTune, model_digest
from unmask.finetuning.methods.protocol import count_trained
from unmask.finetuning.task_data import TaskData
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.nets.layers.scalar_mix import ScalarMix
from unmask.train.distributed import DistContext
from unmask.train.run_config import RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, remove_atomically
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, mark_finished, start_or_resume
from unmask.train.rundir.metrics_log import LogLine


def finetune(tuning: FineTune, run: RunConfig, processes: DistContext, out: Path, source: Path) -> None:
    """Tune in a folder that nobody else writes to. The first process speaks and saves for all."""
    if not processes.is_main:
        _train_along(tuning, run, processes, out)
        return
    with lock_run(out), explain_interrupt(out):
        description = tuning.describe()
        check_same_run(out, description)
        if is_finished(out):
            print_line(f"{out} is tuned already.", stderr=True)
        else:
            course = _encode(tuning)
            start_or_resume(out, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.barrier()
            _train(tuning, course, run, processes, out, source)
        _remove_checkpoints(out)
        print_scores(out, tuning.data)


def _train_along(tuning: FineTune, run: RunConfig, processes: DistContext, out: Path) -> None:
    """What all processes but the first do: train along, unless there is nothing left to do."""
    if not is_finished(out):
        course = tuning.encode()
        processes.barrier()
        tuning.train(course, run, processes, out)


def _train(
    tuning: FineTune, course: EpochBatches, run: RunConfig, processes: DistContext, out: Path, source: Path
) -> None:
    began = time.monotonic()
    with progress(
        f"tuning {tuning.source} ({tuning.settings.start})", course.num_steps(tuning.settings.epochs)
    ) as tick:
        hear = step_counter(tick, ProgressRemark())
        tuned = tuning.train(course, run, processes, out, [hear], lambda rows: tick(0, f"{rows:,} rows read"))
    _finish(
        tuning,
        tuned,
        course,
        out,
        BaseModelRef(tuning.source, str(source.resolve()), model_digest(tuning.model)),
        began,
    )


def _finish(
    tuning: FineTune, tuned: FineTunedModel, course: EpochBatches, out: Path, root: BaseModelRef, began: float
) -> None:
    """Let the network answer what it is judged by, and save it with its answers and scores."""
    judged, learner, counts = tuning.data.dev, tuned.learner, count_trained(tuned.learner, tuning.method)
    output, answers = fit_thresholds(tuned.task, judged, tuned.task.predict(learner, judged, course.dev))
    found = scores(output, judged, answers)
    facts = {
        "metrics": nan_to_null(found),
        "metric": next(iter(found)),  # the one to compare by
        "chance": nan_to_null(trivial_baseline(output, tuning.data.train, judged)),
        "source": tuning.source,
        "settings": tuning.describe()["settings"],
        "parameters": {"trained": counts.num_trained, "all": counts.num_total},
        "seconds": round(time.monotonic() - began, 1),
        "rows": {"learned": len(tuning.data.train), "judged": len(judged), "cut": _truncation_note(course)},
    }
    save_predictions(out, judged, answers)
    if isinstance(output, SpanQATask):
        save_submission(out, cast(Sequence[QAPrediction], answers))
    save_finetuned(replace(tuned, task=output), out, root, facts)
    layers = list(learner.layer_mix.layer_weights()) if isinstance(learner.layer_mix, ScalarMix) else []
    mark_finished(out, {"metrics": facts["metrics"], "layers": layers})


def _encode(tuning: FineTune) -> EpochBatches:
    """Say what was read, encode the questions, and say how many were too long."""
    for sentence in tuning.data.notes:
        print_line(sentence, stderr=True)
    with progress("encoding", len(tuning.data.train) + len(tuning.data.dev)) as tick:
        course = tuning.encode(tick)
    rows = len(course.train.rows) + len(course.dev.rows)
    if _truncation_note(course):
        long = f"{_truncation_note(course):,} of {rows:,} rows have more than {course.max_length} tokens; their ends were cut off"
        print_line(long, stderr=True)
    for note in (*course.train.notes, *course.dev.notes):
        print_line(note, stderr=True)
    steps = course.num_steps(tuning.settings.epochs)
    few = "; so few teach little: try more --epochs" if steps < _FEW else ""
    print_line(f"{steps:,} steps with {course.batch_size:,} questions each{few}", stderr=True)
    return course


_FEW = 50
"""Fewer steps than this get a hint."""


def _truncation_note(course: EpochBatches) -> int:
    return course.train.rows.num_truncated + course.dev.rows.num_truncated


class ProgressRemark:
    """What the lines of a record say, in a few words: the loss now, and how the last trial went."""

    def __init__(self) -> None:
        self.last_eval = ""

    def __call__(self, line: LogLine) -> str:
        """Hear a line."""
        loss = ", ".join(f"loss {value:.3f}" for value in line.get("loss", {}).values())
        if line["kind"] == "eval":
            right = max(line["accuracy"].values())
            self.last_eval = f"dev: {right:.1%} right" if right else f"dev: {loss}"
            return self.last_eval
        return ", ".join(filter(None, (loss, self.last_eval)))


def print_scores(out: Path, job: TaskData) -> None:
    """Print the scores of a finished folder."""
    found = read_task(out)
    values = {name: float("nan") if value is None else value for name, value in found["metrics"].items()}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"{len(job.dev):,} row{'' if len(job.dev) == 1 else 's'} judged by")
    table.add_column("score", justify="right")
    for name, value in format_scores(values, getattr(job.task, "labels", ())):
        table.add_row(name, value)
    console().print(table)
    guess = found["chance"].get(found["metric"])
    if guess is not None:
        who = "The source, copied," if found["kind"] == "write" else "A guess that knows nothing of the text"
        print_line(f"{who} would have: {METRIC_NAMES[found['metric']]} {guess:.4f}.")
    parameters = found["parameters"]
    share = parameters["trained"] / parameters["all"]
    print_line(f"{parameters['trained']:,} of {parameters['all']:,} parameters were trained ({share:.2%}).")
    print_line(f"The tuned network is in {out}, its answers in {out / PREDICTIONS_FILE}.")


def _remove_checkpoints(out: Path) -> None:
    """Checkpoints are for going on. What is finished is in its own files."""
    if (out / CHECKPOINTS).is_dir():
        remove_atomically(out / CHECKPOINTS)
