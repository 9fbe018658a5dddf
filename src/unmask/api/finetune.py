"""Fine-tuning: the verb `finetune` of the library, and the flow of the command.

The flow reads and encodes a task, trains, predicts the rows of the dev file, scores them and saves a folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

from unmask.api.models import FineTunedModel, Model
from unmask.core.reporter import SILENT, Reporter
from unmask.evaluation.by_task import fit_thresholds, scores, trivial_baseline
from unmask.finetuning.artifact import (
    BaseModelRef,
    FineTunedNetwork,
    nan_to_null,
    save_finetuned,
    save_predictions,
)
from unmask.finetuning.data.span_qa.predictions import QAPrediction, save_submission
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTune, FineTuneSettings, choose_max_length, model_digest
from unmask.finetuning.init_weights import StartFrom, with_dropout
from unmask.finetuning.methods.by_name import method_by_name
from unmask.finetuning.methods.protocol import Method, count_trained
from unmask.finetuning.task_data import TaskData, load_task_data
from unmask.finetuning.task_options import TaskOptions, parse_task_type
from unmask.finetuning.tasks.protocol import default_max_length
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.nets.layers.scalar_mix import ScalarMix
from unmask.train.run_config import DistContext, RunConfig, Switch, default_run_config, init_distributed
from unmask.train.rundir.checkpoint import CHECKPOINTS, remove_atomically
from unmask.train.rundir.folder import check_same_run, is_finished, lock_run, mark_finished, start_or_resume
from unmask.train.rundir.run_writer import Listener, LogLine, step_counter

_FEW = 50
"""Fewer steps than this get a hint."""
FloatType: TypeAlias = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneOptions:
    """The hyper-parameters of a fine-tuning and the device; None: the usual value."""

    epochs: float = 3.0
    lr: float | None = None
    """None: the usual rate of the method."""
    batch_size: int = 32
    max_length: int | None = None
    """None: 128 tokens; 384 for span question answering."""
    seed: int = 0
    from_scratch: bool = False
    """Initialise all weights randomly, as a baseline."""
    lm_weight: float = 0.0
    """The weight of an auxiliary masked-language-model loss (GPT, section 3.2)."""
    dropout: float | None = None
    """None: the dropout of the pre-trained model."""
    device: str = "auto"
    precision: FloatType = "auto"
    cuda_graphs: Switch = "auto"
    no_kernels: bool = False

    def run_config(self) -> RunConfig:
        """Device and precision on this machine."""
        run = default_run_config(self.device, self.precision, self.cuda_graphs, self.no_kernels)
        return replace(run, keep_checkpoints=1, num_evals=max(1, round(self.epochs)))


DEFAULT_OPTIONS = FineTuneOptions()


def finetune(
    model: Model | Path | str,
    *,
    train: Path | str,
    out: Path | str,
    dev: Path | str | None = None,
    task: str | TaskOptions = "auto",
    method: str | Method = "full",
    options: FineTuneOptions = DEFAULT_OPTIONS,
    reporter: Reporter = SILENT,
    listeners: Sequence[Listener] = (),
) -> FineTunedModel:
    """Fine-tune a pre-trained model on a task file; the same call resumes an interrupted run in `out`.

    `train` and `dev` are .jsonl, .csv, .tsv, .json or .conll files. Without `dev`, a tenth of the training texts is
    held out. `task` is a task type such as "classification", or "auto": the file decides.
    """
    task_options = TaskOptions(task_type=parse_task_type(task)) if isinstance(task, str) else task
    chosen = method_by_name(method, {}) if isinstance(method, str) else method
    data = load_task_data(Path(train), Path(dev) if dev is not None else None, task_options, options.seed)
    run_finetune(model, data, chosen, Path(out), options, reporter, listeners)
    return FineTunedModel.open_finetuned(out)


def run_finetune(
    model: Model | Path | str,
    data: TaskData,
    method: Method,
    out: Path,
    options: FineTuneOptions = DEFAULT_OPTIONS,
    reporter: Reporter = SILENT,
    listeners: Sequence[Listener] = (),
) -> None:
    """Fine-tune on task data that was read already, into `out`. All processes of a distributed run call this."""
    opened = model.loaded if isinstance(model, Model) else Model.open(Path(model)).loaded
    settings = FineTuneSettings(
        epochs=options.epochs,
        lr=method.default_lr if options.lr is None else options.lr,
        batch_size=options.batch_size,
        max_length=choose_max_length(opened.model, options.max_length, default_max_length(data.task.task_type)),
        seed=options.seed,
        start=StartFrom.SCRATCH if options.from_scratch else StartFrom.PRETRAINED,
        lm_weight=options.lm_weight,
    )
    network = opened.model if options.dropout is None else with_dropout(opened.model, options.dropout)
    flow = FineTuneFlow(
        finetune=FineTune(data, network, opened.tokenizer, settings, opened.name, method),
        run=options.run_config(),
        out=out,
        source=model.folder if isinstance(model, Model) else Path(model),
        reporter=reporter,
        listeners=tuple(listeners),
    )
    with init_distributed(flow.run.device) as dist:
        flow.execute(dist)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneFlow:
    """One fine-tuning in one folder: encode, train, evaluate, save."""

    finetune: FineTune
    run: RunConfig
    out: Path
    source: Path
    """The folder of the pre-trained model."""
    reporter: Reporter = SILENT
    listeners: tuple[Listener, ...] = ()
    """Receive every line of the log."""

    def execute(self, dist: DistContext) -> None:
        """Fine-tune in a folder that no other process writes to; the first process reports and saves for all."""
        if not dist.is_main:
            self._train_worker(dist)
            return
        with lock_run(self.out):
            description = self.finetune.describe()
            check_same_run(self.out, description)
            if is_finished(self.out):
                self.reporter.note(f"{self.out} is fine-tuned already.")
            else:
                batches = self._encode()
                start_or_resume(self.out, description)  # only now: a row that cannot be encoded leaves no folder
                dist.barrier()
                self._train(batches, dist)
            _remove_checkpoints(self.out)

    def _train_worker(self, dist: DistContext) -> None:
        """The part of every process but the first."""
        if not is_finished(self.out):
            batches = self.finetune.encode()
            dist.barrier()
            self.finetune.train(batches, self.run, dist, self.out)

    def _encode(self) -> EpochBatches:
        """Encode all rows; report what was read and how many rows were truncated."""
        spec, note = self.finetune, self.reporter.note
        for sentence in spec.data.notes:
            note(sentence)
        with self.reporter.progress("encoding", len(spec.data.train) + len(spec.data.dev)) as tick:
            batches = spec.encode(tick)
        rows = len(batches.train.rows) + len(batches.dev.rows)
        if num_truncated(batches):
            note(
                f"{num_truncated(batches):,} of {rows:,} rows have more than {batches.max_length} tokens; their ends "
                "were cut off"
            )
        for sentence in (*batches.train.notes, *batches.dev.notes):
            note(sentence)
        steps = batches.num_steps(spec.settings.epochs)
        few = "; so few train little: try more --epochs" if steps < _FEW else ""
        note(f"{steps:,} steps with {batches.batch_size:,} rows each{few}")
        return batches

    def _train(self, batches: EpochBatches, dist: DistContext) -> None:
        spec, began = self.finetune, time.monotonic()
        title = f"fine-tuning {spec.source} ({spec.settings.start})"
        with self.reporter.progress(title, batches.num_steps(spec.settings.epochs)) as tick:
            listeners = [step_counter(tick, ProgressRemark()), *self.listeners]
            tuned = spec.train(
                batches, self.run, dist, self.out, listeners, lambda rows: tick(0, f"{rows:,} rows read")
            )
        self._finish(tuned, batches, began)

    def _finish(self, tuned: FineTunedNetwork, batches: EpochBatches, began: float) -> None:
        """Predict and score the dev rows; save the model with its predictions and scores."""
        spec, out = self.finetune, self.out
        dev, counts = spec.data.dev, count_trained(tuned.learner, spec.method)
        task, predictions = fit_thresholds(tuned.task, dev, tuned.task.predict(tuned.learner, dev, batches.dev))
        found = scores(task, dev, predictions)
        facts = {
            "metrics": nan_to_null(found),
            "metric": next(iter(found)),  # the one to compare by
            "baseline": nan_to_null(trivial_baseline(task, spec.data.train, dev)),
            "source": spec.source,
            "settings": spec.describe()["settings"],
            "parameters": {"trained": counts.num_trained, "all": counts.num_total},
            "seconds": round(time.monotonic() - began, 1),
            "rows": {"train": len(spec.data.train), "dev": len(dev), "truncated": num_truncated(batches)},
        }
        save_predictions(out, dev, predictions)
        if isinstance(task, SpanQATask):
            save_submission(out, cast(Sequence[QAPrediction], predictions))
        base = BaseModelRef(spec.source, str(self.source.resolve()), model_digest(spec.model))
        save_finetuned(replace(tuned, task=task), out, base, facts)
        mix = tuned.learner.layer_mix
        layers = list(mix.layer_weights()) if isinstance(mix, ScalarMix) else []
        mark_finished(out, {"metrics": facts["metrics"], "layers": layers})


def num_truncated(batches: EpochBatches) -> int:
    """Rows of both files that are longer than the maximum length."""
    return batches.train.rows.num_truncated + batches.dev.rows.num_truncated


class ProgressRemark:
    """A short remark for each log line: the current loss and the last result on the dev rows."""

    def __init__(self) -> None:
        self.last_eval = ""

    def __call__(self, line: LogLine) -> str:
        """The remark for one line."""
        loss = ", ".join(f"loss {value:.3f}" for value in line.get("loss", {}).values())
        if line["kind"] == "eval":
            accuracy = max(line["accuracy"].values())
            self.last_eval = f"dev: {accuracy:.1%} right" if accuracy else f"dev: {loss}"
            return self.last_eval
        return ", ".join(filter(None, (loss, self.last_eval)))


def _remove_checkpoints(out: Path) -> None:
    """Checkpoints serve to resume; a finished folder has files of its own."""
    if (out / CHECKPOINTS).is_dir():
        remove_atomically(out / CHECKPOINTS)
