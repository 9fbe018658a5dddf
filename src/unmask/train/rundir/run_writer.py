"""The record and the checkpoints of a run, in its folder.

The record, `record.jsonl`, is one JSON object a line, in the order of the steps.

Checkpoints are copied on the device and written by a thread, so training continues meanwhile. A run that finds a
checkpoint in its folder resumes from it and continues its record.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeAlias

import torch
from safetensors.torch import save
from torch import Tensor

from unmask.core.io.atomic import atomic_file, disk_errors, raise_disk_error
from unmask.core.records import Inputs
from unmask.core.reporter import ProgressCallback
from unmask.train.batches.worker_process import fork_available
from unmask.train.optim.state import load_state_tensors, state_tensors
from unmask.train.rundir.checkpoint import (
    CHECKPOINTS,
    MODEL,
    OPTIMIZER,
    RunState,
    list_checkpoints,
    prune_checkpoints,
    read_state,
    read_tensors,
    remove_atomically,
    remove_partial,
    save_checkpoint,
    write_checkpoint,
)
from unmask.train.step import DeviceBatch, StepRunner

RECORD = "record.jsonl"
LogLine: TypeAlias = Mapping[str, Any]
"""What is said once, as plain data: its `kind`, its `step`, and what belongs to that kind."""
Listener: TypeAlias = Callable[[LogLine], None]
"""Hears every line as it is written."""


class MetricsLog:
    """A file that lines are added to. Open it with the step from which the run goes on."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / RECORD
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            truncate_after(self.path, step)
            self._file: TextIO = self.path.open("a", encoding="utf-8")

    def add(self, line: LogLine) -> None:
        """One line; a reader sees it at once."""
        try:  # no `disk_errors` here: this is part of every step
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise_disk_error(error, self.path.parent)

    def fsync(self) -> None:
        """Make the lines so far survive whatever happens to the machine."""
        with disk_errors(self.path.parent):
            os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        with disk_errors(self.path.parent):
            self._file.close()


def step_counter(tick: ProgressCallback, remark: Callable[[LogLine], str]) -> Listener:
    """A listener that reports the number of steps, with a remark made from each line."""

    def listen(line: LogLine) -> None:
        if line["kind"] == "start" and line["step"]:
            tick.note(f"going on from step {line['step']:,}")
        tick(line["step"], remark(line))

    return listen


def read_record(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a record, up to one that a kill or a full disk has torn."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line: dict[str, Any] = json.loads(text)
            except ValueError:
                return
            if text.endswith("\n"):
                yield line


def truncate_after(path: Path, step: int) -> None:
    """Remove the lines of steps that will be done again, and a torn one. Trials of the kept step stay."""
    if not path.exists():
        return
    with atomic_file(path) as file:  # line by line: a long run has millions of them
        for line in read_record(path):
            if line["step"] <= step:
                file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace"))


_NEVER = -1
"""The step from which a record is kept when nothing is resumed: none of its lines stays."""


@dataclass(slots=True)
class RunWriter:
    """The keeper of a run's files. Only the first process has a record."""

    folder: Path
    step_runner: StepRunner
    listeners: Sequence[Listener]
    metrics_logs: Sequence[MetricsLog]
    """The record; empty for all processes but the first."""
    checkpoint_writer: AsyncCheckpointWriter
    state: RunState
    """Where the run stood when it was opened."""
    resumed: bool
    output_closed: bool = False
    """Whether nobody looks on any more, who did."""
    saved_at: float = field(default_factory=time.monotonic)

    @staticmethod
    @contextmanager
    def open(folder: Path, step_runner: StepRunner, listeners: Sequence[Listener]) -> Iterator[RunWriter]:
        """Read the last checkpoint into the worker, if there is one, and begin or go on with the record."""
        leads = step_runner.dist.is_main
        if leads:
            remove_partial(folder / CHECKPOINTS)
        step_runner.dist.barrier()
        found = list_checkpoints(folder / CHECKPOINTS)[-1:]
        state = _load_checkpoint(found[0], step_runner) if found else RunState()
        with ExitStack() as stack:
            step = state.progress.step if found else _NEVER
            records = [stack.enter_context(MetricsLog(folder, step))] if leads else []
            writer = stack.enter_context(
                AsyncCheckpointWriter.for_folder(folder / CHECKPOINTS, step_runner.config.keep_checkpoints)
            )
            keeping = RunWriter(folder, step_runner, listeners if leads else (), records, writer, state, bool(found))
            keeping.add(_start_line(step_runner, state))
            yield keeping

    def add(self, line: LogLine) -> None:
        """A line for the record, and for whoever listens."""
        for record in self.metrics_logs:
            record.add(line)
        for listen in () if self.output_closed else self.listeners:
            try:
                listen(line)
            except (BrokenPipeError, SystemExit):  # what showed it has gone, as with `| tee log` at Ctrl-C
                self.output_closed = True

    def save(self, state: RunState) -> None:
        """A checkpoint, after the lines that led to it, is on its way to the disk; older ones will be removed."""
        for record in self.metrics_logs:
            record.fsync()
            self.checkpoint_writer.write(*_trained_tensors(self.step_runner), state)
        self.saved_at = time.monotonic()

    def checkpoint_due(self) -> bool:
        """Whether the last checkpoint is older than the run allows, by the clock of the process that writes them; or
        could not be written, which is told with the next one.
        """
        late = (
            self.checkpoint_writer.failed
            or time.monotonic() - self.saved_at > 60 * self.step_runner.config.save_every_minutes
        )
        return bool(self.metrics_logs) and late

    def dump_failure(self, state: RunState, device_batch: DeviceBatch) -> Path:
        """Keep the state before a step that failed, and its batch, for whoever looks for the reason."""
        where = self.folder / f"not-finite-{state.progress.step + 1}"
        if self.metrics_logs:
            if where.exists():
                remove_atomically(where)
            write_checkpoint(where, *_trained_tensors(self.step_runner), state)
            for number, instance in enumerate(device_batch.step_batch.instances):
                _write_inputs(where / f"batch-{number}.safetensors", instance.inputs)
        return where


def _write_inputs(path: Path, inputs: Inputs) -> None:
    """What the network was shown."""
    shown = {name: torch.tensor(getattr(inputs, name)) for name in ("ids", "segment", "position", "rows")}
    with atomic_file(path) as file:
        file.write(save(shown))


def _trained_tensors(worker: StepRunner) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Everything that moves. What rests is where it came from, and is not written again and again."""
    names = dict(worker.model.named_parameters())
    moving = {name: parameter.detach() for name, parameter in names.items() if parameter in worker.optimizer.state}
    memory = worker.memory.state_tensors() if worker.memory else {}
    return moving, {**state_tensors(worker.optimizer, names), **memory}


def _load_checkpoint(checkpoint: Path, worker: StepRunner) -> RunState:
    state = read_state(checkpoint)
    names = dict(worker.model.named_parameters())
    resting = {name: parameter for name, parameter in names.items() if parameter not in worker.optimizer.state}
    worker.model.load_weights({**resting, **read_tensors(checkpoint, MODEL)})
    saved = read_tensors(checkpoint, OPTIMIZER)
    load_state_tensors(worker.optimizer, names, worker.memory.load_state_tensors(saved) if worker.memory else saved)
    return state


def _start_line(worker: StepRunner, state: RunState) -> dict[str, object]:
    """The line with which every start is recorded."""
    run = worker.config
    return {
        "kind": "start",
        "step": state.progress.step,
        "device": _device_name(run.device),
        "precision": run.precision.value,
        "processes": worker.dist.world_size,
        "microbatch_tokens": run.microbatch_tokens,
        "compile": run.compile,
        "bucketed": run.has_few_shapes,
        "cuda_graphs": run.cuda_graphs,
        "triton_kernels": run.uses_kernels,
        "sparse_last_block": run.uses_sparse_last_block,
        "generator_stream": bool(worker.model.generator_stream.streams),
        "max_in_flight": worker.max_in_flight,
        "batch_worker_process": run.batch_worker_process and fork_available(),
        "torch": torch.__version__,
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


Tensors = Mapping[str, Tensor]


@dataclass(slots=True)
class AsyncCheckpointWriter:
    """Writes one checkpoint after another into a folder."""

    folder: Path
    keep_checkpoints: int
    executor: ThreadPoolExecutor
    pinned_buffers: dict[str, Tensor] = field(default_factory=dict)
    """Pinned memory for copies from a GPU, by name."""
    pending: list[Future[None]] = field(default_factory=list)
    """What is being written; nothing or one."""

    @staticmethod
    @contextmanager
    def for_folder(folder: Path, keep_checkpoints: int) -> Iterator[AsyncCheckpointWriter]:
        """A writer for the time of a block, at whose end everything is on disk; or it says why not, however it ends."""
        with ThreadPoolExecutor(1) as pool:
            writer = AsyncCheckpointWriter(folder, keep_checkpoints, pool)
            try:
                yield writer
            finally:
                writer.wait()

    @property
    def failed(self) -> bool:
        """Whether the last checkpoint could not be written."""
        return any(one.done() and one.exception() for one in self.pending)

    def write(self, model: Tensors, optimizer: Tensors, state: RunState) -> None:
        """Copy the tensors, and begin to write them; waits for the checkpoint before, and says why it failed."""
        self.wait()
        weights, memory = self._copy_all("model", model), self._copy_all("optimizer", optimizer)
        for device in {tensor.device for tensor in (*model.values(), *optimizer.values()) if tensor.is_cuda}:
            torch.cuda.synchronize(device)
        self.pending.append(self.executor.submit(self._write, weights, memory, state))

    def wait(self) -> None:
        """Until nothing is being written any more."""
        while self.pending:
            self.pending.pop().result()

    def _copy_all(self, kind: str, tensors: Tensors) -> dict[str, Tensor]:
        return {name: self._copy(f"{kind}/{name}", tensor.detach()) for name, tensor in tensors.items()}

    def _copy(self, name: str, tensor: Tensor) -> Tensor:
        if not tensor.is_cuda:
            return tensor.to("cpu", copy=True)
        if name not in self.pinned_buffers:
            self.pinned_buffers[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return self.pinned_buffers[name].copy_(tensor, non_blocking=True)

    def _write(self, model: Tensors, optimizer: Tensors, state: RunState) -> None:
        save_checkpoint(self.folder, model, optimizer, state)
        prune_checkpoints(self.folder, self.keep_checkpoints, state.best.step)
