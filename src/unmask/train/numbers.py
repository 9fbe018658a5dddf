"""Numbers on their way from the device to the host.

What arrives: a tensor that a step has queued. What leaves: its numbers, when somebody looks at them.
What never happens here: a wait for the device before somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers that will have arrived when they are read."""

    host_N: Tensor
    arrive: Callable[[], object]
    """Waits until they are there."""

    def read(self) -> list[float]:
        """The numbers, after waiting for them if that is necessary."""
        self.arrive()
        found: list[float] = self.host_N.tolist()
        return found


def sent(numbers_N: Tensor) -> Numbers:
    """Begin to copy numbers to the host. The device goes on with whatever is queued behind them."""
    if not numbers_N.is_cuda:
        return Numbers(numbers_N, _at_once)
    host_N = torch.empty(numbers_N.shape, dtype=numbers_N.dtype, pin_memory=True)
    host_N.copy_(numbers_N, non_blocking=True)
    # Blocking: a thread that waits for this event sleeps, and leaves its core to the one that makes the next lesson.
    event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(numbers_N.device))
    return Numbers(host_N, event.synchronize)


def _at_once() -> None:
    """What lies on the host is there."""
