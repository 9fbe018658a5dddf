"""What a run keeps: its record and its checkpoints, in one folder.

What arrives: lines and states. What leaves: files from which the same command goes on.
What never happens here: writing by any process but the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save

from unmask.shards.files import new_file
from unmask.train.checkpoint import (
    MODEL,
    OPTIMISER,
    State,
    checkpoints,
    discard,
    prune,
    read_state,
    read_tensors,
    save_checkpoint,
    sweep_checkpoints,
    write_checkpoint,
)
from unmask.train.optim_state import load_state_tensors, state_tensors
from unmask.train.record import Record
from unmask.train.step import Loaded, Worker

FOLDER = "checkpoints"
_NEVER = -1
"""The step from which a record is kept when nothing is resumed: none of its lines stays."""


@dataclass(slots=True)
class Keeping:
    """The keeper of a run's files. Only the first process has a record."""

    folder: Path
    worker: Worker
    listeners: Sequence[Callable[[Mapping[str, object]], None]]
    records: Sequence[Record]
    """The record; empty for all processes but the first."""
    state: State
    """Where the run stood when it was opened."""
    resumed: bool
    saved_at: float = field(default_factory=time.monotonic)

    @staticmethod
    @contextmanager
    def open(
        folder: Path, worker: Worker, listeners: Sequence[Callable[[Mapping[str, object]], None]]
    ) -> Iterator[Keeping]:
        """Read the last checkpoint into the worker, if there is one, and begin or go on with the record."""
        leads = worker.processes.leads
        if leads:
            sweep_checkpoints(folder / FOLDER)
        worker.processes.wait()
        found = checkpoints(folder / FOLDER)[-1:]
        state = _read(found[0], worker) if found else State()
        with ExitStack() as stack:
            step = state.progress.step if found else _NEVER
            records = [stack.enter_context(Record(folder, step))] if leads else []
            keeping = Keeping(folder, worker, listeners if leads else (), records, state, bool(found))
            keeping.add(_start(worker, state))
            yield keeping

    def add(self, line: Mapping[str, object]) -> None:
        """A line for the record, and for whoever listens."""
        for record in self.records:
            record.add(line)
        for listen in self.listeners:
            listen(line)

    def save(self, state: State) -> None:
        """A checkpoint, after the lines that led to it; older ones are removed."""
        for record in self.records:
            record.secure()
            save_checkpoint(self.folder / FOLDER, *_tensors(self.worker), state)
            prune(self.folder / FOLDER, self.worker.run.keep, state.best.step)
        self.saved_at = time.monotonic()

    def is_late(self) -> bool:
        """Whether the last checkpoint is older than the run allows."""
        return time.monotonic() - self.saved_at > 60 * self.worker.run.save_minutes

    def keep_broken(self, state: State, loaded: Loaded) -> Path:
        """Keep the state before a step that failed, and its batch, for whoever looks for the reason."""
        where = self.folder / f"not-finite-{state.progress.step + 1}"
        if self.records:
            if where.exists():
                discard(where)
            write_checkpoint(where, *_tensors(self.worker), state)
            for number, instance in enumerate(loaded.lesson.instances):
                inputs = instance.inputs
                arrays: dict[str, npt.NDArray[np.integer]] = {
                    "ids": inputs.ids,
                    "segment": inputs.segment,
                    "position": inputs.position,
                    "rows": inputs.rows,
                }
                with new_file(where / f"batch-{number}.safetensors") as file:
                    file.write(save({name: torch.from_numpy(array.copy()) for name, array in arrays.items()}))
        return where


def _tensors(worker: Worker) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    names = dict(worker.learner.named_parameters())
    return worker.learner.weights(), state_tensors(worker.optimizer, names)


def _read(checkpoint: Path, worker: Worker) -> State:
    state = read_state(checkpoint)
    worker.learner.take_weights(read_tensors(checkpoint, MODEL))
    names = dict(worker.learner.named_parameters())
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
        "torch": torch.__version__,
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
