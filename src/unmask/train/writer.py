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

from unmask.train.checkpoint import State, prune, save_checkpoint

Tensors = Mapping[str, Tensor]


@dataclass(slots=True)
class Writer:
    """Writes one checkpoint after another into a folder."""

    folder: Path
    keep: int
    pool: ThreadPoolExecutor
    room: dict[str, Tensor] = field(default_factory=dict)
    """Pinned memory for copies from a GPU, by name."""
    open: list[Future[None]] = field(default_factory=list)
    """What is being written; nothing or one."""

    @staticmethod
    @contextmanager
    def into(folder: Path, keep: int) -> Iterator[Writer]:
        """A writer for the time of a block, at whose end everything is on disk; or it says why not, however it ends."""
        with ThreadPoolExecutor(1) as pool:
            writer = Writer(folder, keep, pool)
            try:
                yield writer
            finally:
                writer.wait()

    @property
    def failed(self) -> bool:
        """Whether the last checkpoint could not be written."""
        return any(one.done() and one.exception() for one in self.open)

    def write(self, model: Tensors, optimiser: Tensors, state: State) -> None:
        """Copy the tensors, and begin to write them; waits for the checkpoint before, and says why it failed."""
        self.wait()
        weights, memory = self._copies("model", model), self._copies("optimiser", optimiser)
        for device in {tensor.device for tensor in (*model.values(), *optimiser.values()) if tensor.is_cuda}:
            torch.cuda.synchronize(device)
        self.open.append(self.pool.submit(self._write, weights, memory, state))

    def wait(self) -> None:
        """Until nothing is being written any more."""
        while self.open:
            self.open.pop().result()

    def _copies(self, kind: str, tensors: Tensors) -> dict[str, Tensor]:
        return {name: self._copy(f"{kind}/{name}", tensor.detach()) for name, tensor in tensors.items()}

    def _copy(self, name: str, tensor: Tensor) -> Tensor:
        if not tensor.is_cuda:
            return tensor.to("cpu", copy=True)
        if name not in self.room:
            self.room[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return self.room[name].copy_(tensor, non_blocking=True)

    def _write(self, model: Tensors, optimiser: Tensors, state: State) -> None:
        save_checkpoint(self.folder, model, optimiser, state)
        prune(self.folder, self.keep, state.best.step)
