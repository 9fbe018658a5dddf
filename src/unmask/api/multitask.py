"""The flow of `multitask`: encode, train together, judge, save; then perhaps each task alone; tell.

What arrives: a `Together` and where it is computed. What leaves: finished folders and a table of scores.
What never happens here: learning or judging; see `unmask.finetuning`, `unmask.train` and `unmask.evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from unmask.cli.ui.console import explain_interrupt, print_line
from unmask.cli.ui.multitask_table import print_scores
from unmask.cli.ui.progress import progress
from unmask.cli.ui.training_display import step_counter
from unmask.core.errors import InputError
from unmask.evaluation.by_task import scores
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.finetuning.artifact import BaseModelRef, nan_to_null, save_finetuned, save_predictions
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.export.hf import open_finetuned
from unmask.finetuning.finetune import model_digest
from unmask.finetuning.multitask.artifact import ENCODER_FOLDER, save_head
from unmask.finetuning.multitask.finetune import MultiTaskFineTune, encoder_only
from unmask.finetuning.multitask.schedule import MultiTaskBatches
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.loading.encoder_folder import save_encoder
from unmask.train.distributed import DistContext
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, remove_atomically
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, mark_finished, start_or_resume
from unmask.train.rundir.metrics_log import LogLine

EACH = "each"
"""The folder of what was tuned alone afterwards."""
SaveFunction: TypeAlias = Callable[[MultiTaskFineTune, MultiHeadModel, MultiTaskBatches, Path], dict[str, object]]
"""Saves what was learned in a folder, and returns the scores by task."""


def finetune_tasks(
    finetune: MultiTaskFineTune, then_each: float, run: RunConfig, processes: DistContext, out: Path
) -> None:
    """Tune all tasks together, then each alone if that is wished for. The first process speaks and saves for all."""
    for task in finetune.tasks:
        if task.metric and task.metric not in METRIC_NAMES:
            raise InputError(
                f"Task {task.name!r}: there is no score {task.metric!r}; known are {', '.join(METRIC_NAMES)}."
            )
    with explain_interrupt(out) if processes.is_main else nullcontext():
        run_if_unfinished(finetune, run, processes, out, _save_shared)
        for task in finetune.tasks if then_each else ():
            processes.barrier()  # until the folder is there for all
            alone = finetune.continue_with(task, open_finetuned(out / task.name), then_each)
            once = replace(run, num_evals=max(1, round(then_each)))
            run_if_unfinished(alone, once, processes, out / EACH / task.name, _save_single)
        if processes.is_main:
            print_scores(out, finetune.tasks, out / EACH)


def run_if_unfinished(
    finetune: MultiTaskFineTune, run: RunConfig, processes: DistContext, folder: Path, save: SaveFunction
) -> None:
    """One run in a folder that nobody else writes to, unless it is finished already."""
    if not processes.is_main:
        if not is_finished(folder):
            course = finetune.encode()
            processes.barrier()
            finetune.train(course, run, processes, folder)
        return
    with lock_run(folder):
        description = finetune.describe()
        check_same_run(folder, description)
        if is_finished(folder):
            print_line(f"{folder} is tuned already.", stderr=True)
        else:
            course = _encode(finetune)
            start_or_resume(folder, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.barrier()
            learner = _train(finetune, course, run, processes, folder)
            mark_finished(folder, {"metrics": save(finetune, learner, course, folder)})
        if (folder / CHECKPOINTS).is_dir():
            remove_atomically(folder / CHECKPOINTS)  # what is finished is in its own files


def _encode(together: MultiTaskFineTune) -> MultiTaskBatches:
    """Say what was read, encode the questions, and say how many were too long."""
    for task in together.tasks if not together.heads else ():  # who goes on has heard it
        for sentence in task.data.notes:
            print_line(f"{task.name}: {sentence}", stderr=True)
    total = sum(len(task.data.train) + len(task.data.dev) for task in together.tasks)
    with progress("encoding", total) as tick:
        course = together.encode(tick)
    for part in course.parts:
        if _truncation_note(part):
            print_line(
                f"{part.task_name}: {_truncation_note(part):,} rows have more than {part.max_length} tokens; their ends were cut off",
                True,
            )
    return course


def _train(
    together: MultiTaskFineTune, course: MultiTaskBatches, run: RunConfig, processes: DistContext, folder: Path
) -> MultiHeadModel:
    names = ", ".join(task.name for task in together.tasks)
    with progress(f"tuning {together.source}: {names}", course.num_steps) as tick:
        return together.train(course, run, processes, folder, [step_counter(tick, format_remark)])


def format_remark(line: LogLine) -> str:
    """What a line of the record says, in a few words that fit beside a bar."""
    losses = line.get("loss", {})
    if line["kind"] == "eval":
        return f"dev: mean loss {sum(losses.values()) / len(losses):.3f}"
    return ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())


def _save_shared(
    together: MultiTaskFineTune, learner: MultiHeadModel, course: MultiTaskBatches, folder: Path
) -> dict[str, object]:
    """The trunk once, and a folder for the head of each task."""
    trunk = encoder_only(learner)
    found: dict[str, object] = {}
    save_encoder(trunk, together.tokenizer, folder / ENCODER_FOLDER, {"source": together.source})
    for task, part in zip(together.tasks, course.parts, strict=True):
        facts = _evaluate(together, learner, task, part, folder / task.name)
        save_head(together.finetuned_task(learner, task), folder / task.name, trunk, facts)
        found[task.name] = facts["metrics"]
    return found


def _save_single(
    together: MultiTaskFineTune, learner: MultiHeadModel, course: MultiTaskBatches, folder: Path
) -> dict[str, object]:
    """The one task as `unmask tune` would leave it."""
    (task,), (part,) = together.tasks, course.parts
    facts = _evaluate(together, learner, task, part, folder)
    root = BaseModelRef(ENCODER_FOLDER, f"../../{ENCODER_FOLDER}", model_digest(together.model))
    save_finetuned(together.finetuned_task(learner, task), folder, root, facts)
    return {task.name: facts["metrics"]}


def _evaluate(
    together: MultiTaskFineTune, learner: MultiHeadModel, task: TaskEntry, part: EpochBatches, folder: Path
) -> dict[str, object]:
    """Let a task be answered, write the answers, and return what is known about it."""
    job = task.data
    folder.mkdir(exist_ok=True)
    answers = job.task.predict(learner, job.dev, part.dev)
    save_predictions(folder, job.dev, answers)
    found = scores(job.task, job.dev, answers)
    return {
        "metrics": nan_to_null(found),
        "metric": task.metric if task.metric in found else next(iter(found)),
        "source": together.source,
        "settings": together.describe()["settings"],
        "rows": {"learned": len(job.train), "judged": len(job.dev), "cut": _truncation_note(part)},
    }


def _truncation_note(part: EpochBatches) -> int:
    return part.train.rows.num_truncated + part.dev.rows.num_truncated
