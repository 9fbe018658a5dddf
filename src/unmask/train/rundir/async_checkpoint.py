"""Checkpoints that are written in the background, while the device learns on.

What arrives: tensors that move, and where a run stands. What leaves: a checkpoint, and fewer old ones.
What never happens here: a tensor that moves while it is written. All are copied on the host first, which is all that
a run waits for; from a GPU into pinned memory, which is kept for the next time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from unmask.train.rundir.checkpoint import RunState, prune_checkpoints, save_checkpoint

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
        weights, memory = self._copy_all("model", model), self._copy_all("optimiser", optimizer)
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

    def _write(self, model: Tensors, optimiser: Tensors, state: RunState) -> None:
        save_checkpoint(self.folder, model, optimiser, state)
        prune_checkpoints(self.folder, self.keep_checkpoints, state.best.step)
