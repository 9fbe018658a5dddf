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

_When: TypeAlias = torch.cuda.Event | float
"""The moment at which a GPU gets somewhere, or one that has been, in seconds."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers that will have arrived when they are read."""

    host_N: Tensor
    when: _When

    def read(self) -> list[float]:
        """The numbers, after waiting for them if that is necessary."""
        if isinstance(self.when, torch.cuda.Event):
            self.when.synchronize()
        found: list[float] = self.host_N.tolist()
        return found

    def seconds_since(self, earlier: Numbers) -> float:
        """How long the device took from those to these, which have been read; whenever that was."""
        if isinstance(self.when, torch.cuda.Event):
            assert isinstance(earlier.when, torch.cuda.Event)
            milliseconds: float = earlier.when.elapsed_time(self.when)
            return milliseconds / 1000
        assert isinstance(earlier.when, float)
        return self.when - earlier.when


def sent(numbers_N: Tensor) -> Numbers:
    """Begin to copy numbers to the host. The device goes on with whatever is queued behind them."""
    if not numbers_N.is_cuda:
        return Numbers(numbers_N.cpu(), time.monotonic())
    host_N = torch.empty(numbers_N.shape, dtype=numbers_N.dtype, pin_memory=True)
    host_N.copy_(numbers_N, non_blocking=True)
    # Blocking: a thread that waits for this event sleeps, and leaves its core to the one that makes the next lesson.
    event = torch.cuda.Event(enable_timing=True, blocking=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(numbers_N.device))
    return Numbers(host_N, event)


def mark(device: torch.device) -> Numbers:
    """No numbers, but the moment at which the device gets here."""
    return sent(torch.zeros(1, device=device))
