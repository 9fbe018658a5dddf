"""What a run keeps: its record and its checkpoints, in one folder.

What arrives: lines and states. What leaves: files from which the same command goes on.
What never happens here: writing by any process but the first, or writing what never moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import torch
from safetensors.torch import save

from unmask.records import Inputs
from unmask.shards.files import new_file
from unmask.train.checkpoint import (
    CHECKPOINTS,
    MODEL,
    OPTIMISER,
    State,
    checkpoints,
    discard,
    read_state,
    read_tensors,
    sweep_checkpoints,
    write_checkpoint,
)
from unmask.train.makers import processes_there
from unmask.train.optim_state import load_state_tensors, state_tensors
from unmask.train.record import Line, Listener, Record
from unmask.train.step import Loaded, Worker
from unmask.train.writer import Writer

_NEVER = -1
"""The step from which a record is kept when nothing is resumed: none of its lines stays."""


@dataclass(slots=True)
class Keeping:
    """The keeper of a run's files. Only the first process has a record."""

    folder: Path
    worker: Worker
    listeners: Sequence[Listener]
    records: Sequence[Record]
    """The record; empty for all processes but the first."""
    writer: Writer
    state: State
    """Where the run stood when it was opened."""
    resumed: bool
    deserted: bool = False
    """Whether nobody looks on any more, who did."""
    saved_at: float = field(default_factory=time.monotonic)

    @staticmethod
    @contextmanager
    def open(folder: Path, worker: Worker, listeners: Sequence[Listener]) -> Iterator[Keeping]:
        """Read the last checkpoint into the worker, if there is one, and begin or go on with the record."""
        leads = worker.processes.leads
        if leads:
            sweep_checkpoints(folder / CHECKPOINTS)
        worker.processes.wait()
        found = checkpoints(folder / CHECKPOINTS)[-1:]
        state = _read(found[0], worker) if found else State()
        with ExitStack() as stack:
            step = state.progress.step if found else _NEVER
            records = [stack.enter_context(Record(folder, step))] if leads else []
            writer = stack.enter_context(Writer.into(folder / CHECKPOINTS, worker.run.keep))
            keeping = Keeping(folder, worker, listeners if leads else (), records, writer, state, bool(found))
            keeping.add(_start(worker, state))
            yield keeping

    def add(self, line: Line) -> None:
        """A line for the record, and for whoever listens."""
        for record in self.records:
            record.add(line)
        for listen in () if self.deserted else self.listeners:
            try:
                listen(line)
            except (BrokenPipeError, SystemExit):  # what showed it has gone, as with `| tee log` at Ctrl-C
                self.deserted = True

    def save(self, state: State) -> None:
        """A checkpoint, after the lines that led to it, is on its way to the disk; older ones will be removed."""
        for record in self.records:
            record.secure()
            self.writer.write(*_tensors(self.worker), state)
        self.saved_at = time.monotonic()

    def is_late(self) -> bool:
        """Whether the last checkpoint is older than the run allows, by the clock of the process that writes them; or
        could not be written, which is told with the next one.
        """
        late = self.writer.failed or time.monotonic() - self.saved_at > 60 * self.worker.run.save_minutes
        return bool(self.records) and late

    def keep_broken(self, state: State, loaded: Loaded) -> Path:
        """Keep the state before a step that failed, and its batch, for whoever looks for the reason."""
        where = self.folder / f"not-finite-{state.progress.step + 1}"
        if self.records:
            if where.exists():
                discard(where)
            write_checkpoint(where, *_tensors(self.worker), state)
            for number, instance in enumerate(loaded.lesson.instances):
                _write_inputs(where / f"batch-{number}.safetensors", instance.inputs)
        return where


def _write_inputs(path: Path, inputs: Inputs) -> None:
    """What the network was shown."""
    shown = {name: torch.tensor(getattr(inputs, name)) for name in ("ids", "segment", "position", "rows")}
    with new_file(path) as file:
        file.write(save(shown))


def _tensors(worker: Worker) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Everything that moves. What rests is where it came from, and is not written again and again."""
    names = dict(worker.learner.named_parameters())
    moving = {name: parameter.detach() for name, parameter in names.items() if parameter in worker.optimizer.state}
    return moving, state_tensors(worker.optimizer, names)


def _read(checkpoint: Path, worker: Worker) -> State:
    state = read_state(checkpoint)
    names = dict(worker.learner.named_parameters())
    resting = {name: parameter for name, parameter in names.items() if parameter not in worker.optimizer.state}
    worker.learner.take_weights({**resting, **read_tensors(checkpoint, MODEL)})
    load_state_tensors(worker.optimizer, names, read_tensors(checkpoint, OPTIMISER))
    return state


def _start(worker: Worker, state: State) -> dict[str, object]:
    """The line with which every start is recorded."""
    run = worker.run
    return {
        "kind": "start",
        "step": state.progress.step,
        "device": _device_name(run.device),
        "precision": run.precision.value,
        "processes": worker.processes.world,
        "micro": run.micro,
        "compile": run.compile,
        "even": run.fixed,
        "graphs": run.graphs,
        "fused": run.kernels,
        "sparing": run.spares,
        "aside": bool(worker.learner.aside.streams),
        "queue": worker.queue,
        "loader_process": run.loader_process and processes_there(),
        "torch": torch.__version__,
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
