"""Numbers on their way from the device to the host.

What arrives: a tensor that a step has queued. What leaves: its numbers, when somebody looks at them, and when they were
there by the device's own clock. What never happens here: a wait for a GPU of CUDA before somebody looks; another
device is waited for at once, and its moments are those of the host.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

_EventOrTime: TypeAlias = torch.cuda.Event | float
"""The moment at which a GPU gets somewhere, or one that has been, in seconds."""


@dataclass(frozen=True, slots=True)
class AsyncScalars:
    """Numbers that will have arrived when they are read."""

    host_N: Tensor
    ready: _EventOrTime

    def read(self) -> list[float]:
        """The numbers, after waiting for them if that is necessary."""
        if isinstance(self.ready, torch.cuda.Event):
            self.ready.synchronize()
        found: list[float] = self.host_N.tolist()
        return found

    def seconds_since(self, earlier: AsyncScalars) -> float:
        """How long the device took from those to these, which have been read; whenever that was."""
        if isinstance(self.ready, torch.cuda.Event):
            assert isinstance(earlier.ready, torch.cuda.Event)
            milliseconds: float = earlier.ready.elapsed_time(self.ready)
            return milliseconds / 1000
        assert isinstance(earlier.ready, float)
        return self.ready - earlier.ready


def copy_async(numbers_N: Tensor) -> AsyncScalars:
    """Begin to copy numbers to the host. The device goes on with whatever is queued behind them."""
    if not numbers_N.is_cuda:
        return AsyncScalars(numbers_N.cpu(), time.monotonic())
    host_N = torch.empty(numbers_N.shape, dtype=numbers_N.dtype, pin_memory=True)
    host_N.copy_(numbers_N, non_blocking=True)
    # Blocking: a thread that waits for this event sleeps, and leaves its core to the one that makes the next lesson.
    event = torch.cuda.Event(enable_timing=True, blocking=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(numbers_N.device))
    return AsyncScalars(host_N, event)


def timestamp(device: torch.device) -> AsyncScalars:
    """No numbers, but the moment at which the device gets here."""
    return copy_async(torch.zeros(1, device=device))
