"""The processes that share a run.

What arrives: the environment that `torchrun` sets. What leaves: who this process is, and sums over all of them.
What never happens here: a second way of starting processes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.train.batches.protocol import RankSplit


@dataclass(frozen=True, slots=True)
class DistContext:
    """The processes that share a run, as `torchrun` started them; one alone if it did not."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this process writes, prints and saves for all."""
        return self.rank == 0

    def rank_split(self, microbatch_tokens: int) -> RankSplit:
        """What a course must know."""
        return RankSplit(self.rank, self.world_size, microbatch_tokens)

    def all_reduce_sum(self, numbers: list[float]) -> list[float]:
        """Numbers added up over all processes, in float64. They cross between hosts; no device is waited for."""
        if self.world_size == 1:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(total)
        summed: list[float] = total.tolist()
        return summed

    def all_reduce_max_(self, number: Tensor) -> None:
        """Make a number on the device the largest of all processes. On a GPU this is queued, and nobody waits."""
        if self.world_size > 1:
            torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)

    def barrier(self) -> None:
        """Until all have come here."""
        if self.world_size > 1:
            torch.distributed.barrier()


def world_size() -> int:
    """How many processes share a run, as `torchrun` says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def init_distributed(device: torch.device) -> Iterator[DistContext]:
    """Who this process is among those of a `torchrun`, for the time of a block."""
    world = world_size()
    if world == 1:
        yield DistContext(0, 1, device)
        return
    # What lies on the host crosses between hosts, so that adding up counts does not wait for the device.
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    yield DistContext(torch.distributed.get_rank(), world, device)
    # Not in a `finally`: a process that failed must not wait for the others, which torchrun ends.
    torch.distributed.barrier()
    # What still holds on to the group must be gone before it is, or its threads may abort this process.
    gc.collect()
    torch.distributed.destroy_process_group()
