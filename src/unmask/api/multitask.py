"""Multi-task fine-tuning (MT-DNN): encode, train together, evaluate and save; then perhaps each task alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from unmask.api.finetune import FineTuneOptions, num_truncated
from unmask.core.errors import InputError
from unmask.core.reporter import SILENT, Reporter
from unmask.evaluation.by_task import scores
from unmask.evaluation.metrics.classification import METRIC_NAMES
from unmask.finetuning.artifact import BaseModelRef, nan_to_null, save_finetuned, save_predictions
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.export.hf import open_finetuned
from unmask.finetuning.finetune import FineTuneSettings, choose_max_length, model_digest
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.finetuning.multitask.artifact import ENCODER_FOLDER, save_head
from unmask.finetuning.multitask.finetune import MultiTaskFineTune, OptimizerName, encoder_only
from unmask.finetuning.multitask.schedule import MultiTaskBatches, TaskOrder
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.loading.encoder_folder import save_encoder
from unmask.loading.open_model import open_model
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig, init_distributed
from unmask.train.rundir.checkpoint import CHECKPOINTS, remove_atomically
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, mark_finished, start_or_resume
from unmask.train.rundir.run_writer import LogLine, step_counter

EACH = "each"
"""The folder of what was tuned alone afterwards."""
SaveFunction: TypeAlias = Callable[[MultiTaskFineTune, MultiHeadModel, MultiTaskBatches, Path], dict[str, object]]
"""Saves what was learned in a folder, and returns the scores by task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTaskOptions:
    """The order of the batches, the optimizer, and the epochs of each task alone afterwards."""

    order: Literal["mixed", "alternating"] = "mixed"
    optimizer: Literal["adamw", "adamax"] = "adamw"
    then_each: float = 0.0


DEFAULT_MULTITASK = MultiTaskOptions()


def run_multitask(
    source: Path,
    tasks: tuple[TaskEntry, ...],
    out: Path,
    options: FineTuneOptions,
    how: MultiTaskOptions = DEFAULT_MULTITASK,
    reporter: Reporter = SILENT,
) -> None:
    """Fine-tune on all tasks together, then on each alone if requested. The first process saves for all."""
    for task in tasks:
        if task.metric and task.metric not in METRIC_NAMES:
            raise InputError(
                f"Task {task.name!r}: there is no score {task.metric!r}; known are {', '.join(METRIC_NAMES)}."
            )
    opened = open_model(source)
    settings = FineTuneSettings(
        epochs=options.epochs,
        lr=FullFineTuning.default_lr if options.lr is None else options.lr,
        batch_size=options.batch_size,
        max_length=choose_max_length(opened.model, options.max_length),
        seed=options.seed,
        start=StartFrom.SCRATCH if options.from_scratch else StartFrom.PRETRAINED,
    )
    together = MultiTaskFineTune(
        tasks,
        opened.model,
        opened.tokenizer,
        settings,
        opened.name,
        TaskOrder(how.order),
        OptimizerName(how.optimizer),
    )
    run = options.run_config()
    with init_distributed(run.device) as dist:
        run_if_unfinished(together, run, dist, out, _save_shared, reporter)
        for task in together.tasks if how.then_each else ():
            dist.barrier()  # until the folder is there for all
            alone = together.continue_with(task, open_finetuned(out / task.name), how.then_each)
            once = replace(run, num_evals=max(1, round(how.then_each)))
            run_if_unfinished(alone, once, dist, out / EACH / task.name, _save_single, reporter)


def run_if_unfinished(
    finetune: MultiTaskFineTune,
    run: RunConfig,
    processes: DistContext,
    folder: Path,
    save: SaveFunction,
    reporter: Reporter = SILENT,
) -> None:
    """One run in a folder that no other process writes to, unless it is finished already."""
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
            reporter.note(f"{folder} is fine-tuned already.")
        else:
            course = _encode(finetune, reporter)
            start_or_resume(folder, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.barrier()
            learner = _train(finetune, course, run, processes, folder, reporter)
            mark_finished(folder, {"metrics": save(finetune, learner, course, folder)})
        if (folder / CHECKPOINTS).is_dir():
            remove_atomically(folder / CHECKPOINTS)  # what is finished is in its own files


def _encode(together: MultiTaskFineTune, reporter: Reporter) -> MultiTaskBatches:
    """Encode all tasks; report the notes of their data and how many rows were truncated."""
    for task in together.tasks if not together.heads else ():  # not when resumed
        for sentence in task.data.notes:
            reporter.note(f"{task.name}: {sentence}")
    total = sum(len(task.data.train) + len(task.data.dev) for task in together.tasks)
    with reporter.progress("encoding", total) as tick:
        course = together.encode(tick)
    for part in course.parts:
        if num_truncated(part):
            reporter.note(
                f"{part.task_name}: {num_truncated(part):,} rows have more than {part.max_length} tokens; their ends "
                "were cut off"
            )
    return course


def _train(
    together: MultiTaskFineTune,
    course: MultiTaskBatches,
    run: RunConfig,
    processes: DistContext,
    folder: Path,
    reporter: Reporter,
) -> MultiHeadModel:
    names = ", ".join(task.name for task in together.tasks)
    with reporter.progress(f"fine-tuning {together.source}: {names}", course.num_steps) as tick:
        return together.train(course, run, processes, folder, [step_counter(tick, format_remark)])


def format_remark(line: LogLine) -> str:
    """A line of the record in a few words that fit next to a bar."""
    losses = line.get("loss", {})
    if line["kind"] == "eval":
        return f"dev: mean loss {sum(losses.values()) / len(losses):.3f}"
    return ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())


def _save_shared(
    together: MultiTaskFineTune, learner: MultiHeadModel, course: MultiTaskBatches, folder: Path
) -> dict[str, object]:
    """The encoder once, and a folder for the head of each task."""
    encoder = encoder_only(learner)
    found: dict[str, object] = {}
    save_encoder(encoder, together.tokenizer, folder / ENCODER_FOLDER, {"source": together.source})
    for task, part in zip(together.tasks, course.parts, strict=True):
        facts = _evaluate(together, learner, task, part, folder / task.name)
        save_head(together.finetuned_task(learner, task), folder / task.name, encoder, facts)
        found[task.name] = facts["metrics"]
    return found


def _save_single(
    together: MultiTaskFineTune, learner: MultiHeadModel, course: MultiTaskBatches, folder: Path
) -> dict[str, object]:
    """One task in the form that `finetune` saves."""
    (task,), (part,) = together.tasks, course.parts
    facts = _evaluate(together, learner, task, part, folder)
    root = BaseModelRef(ENCODER_FOLDER, f"../../{ENCODER_FOLDER}", model_digest(together.model))
    save_finetuned(together.finetuned_task(learner, task), folder, root, facts)
    return {task.name: facts["metrics"]}


def _evaluate(
    together: MultiTaskFineTune, learner: MultiHeadModel, task: TaskEntry, part: EpochBatches, folder: Path
) -> dict[str, object]:
    """Predict and score the dev rows of a task; save the predictions and return the facts of its folder."""
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
        "rows": {"train": len(job.train), "dev": len(job.dev), "truncated": num_truncated(part)},
    }
