"""How a run is computed: device, precision, micro-batches, speed settings, and the processes that share it.

Nothing here changes what is learned. `default_run_config` chooses what suits the machine; processes are those that
`torchrun` has started.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from unmask.core.errors import UserError
from unmask.nets.kernels.dispatch import kernel_failure, triton_available
from unmask.train.batches.recipe_batches import RankSplit


class Precision(StrEnum):
    """In what numbers the network computes. Weights, sums and the optimizer are always in float32."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    """Matrix products in bfloat16 (autocast)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How a run is computed."""

    device: torch.device
    precision: Precision = Precision.FLOAT32
    microbatch_tokens: int = 4096
    """Most tokens in a micro-batch; larger steps are split and their gradients summed."""
    compile: bool = False
    """Whether blocks are compiled by torch before the first step."""
    bucket_shapes: bool = False
    """Whether batches are evened out to few different shapes, so that compiled code fits all of them."""
    cuda_graphs: bool = False
    """Whether steps are recorded, and repeated as a whole (CUDA graphs), wherever they can be."""
    triton_kernels: bool = False
    """Whether attention and the work around matrix products are done by kernels of our own, where there are some."""
    generator_stream: bool = False
    """Whether a network ahead of the trunk goes its way back beside the trunk's; for steps recorded in bfloat16."""
    sparse_last_block: bool = True
    """Whether the last block is computed only at the places that are read, but for keys and values."""
    max_in_flight: int = 0
    """How many steps may be queued on the device before the numbers of one are looked at; 0 looks at once."""
    batch_worker_process: bool = False
    """Whether lessons are made by a process of their own, where there can be one, and not by a thread of this one."""
    keep_checkpoints: int = 2
    """Checkpoints to keep beside the best one."""
    save_every_minutes: float = 10.0
    """The longest time between two checkpoints."""
    num_evals: int = 20
    """How often the run is judged on held-out text, evenly over its budget."""

    def __post_init__(self) -> None:
        if (
            self.microbatch_tokens < 1
            or self.keep_checkpoints < 1
            or self.num_evals < 1
            or self.save_every_minutes < 0
            or self.max_in_flight < 0
        ):
            raise UserError(
                f"A run needs at least 1 token in a micro-batch, 1 checkpoint to keep, 1 trial, 0 queued steps and 0 "
                f"minutes between checkpoints; found {self.microbatch_tokens}, {self.keep_checkpoints}, "
                f"{self.num_evals}, {self.max_in_flight} and {self.save_every_minutes:g}."
            )
        if self.cuda_graphs and not self.max_in_flight:
            raise UserError(
                "Steps that are recorded are looked at when they are over: graphs need a queue of at least 1."
            )

    @property
    def has_few_shapes(self) -> bool:
        """Whether batches have few different shapes."""
        return self.bucket_shapes or self.cuda_graphs

    @property
    def uses_kernels(self) -> bool:
        """Whether kernels of our own are taken: compiled, it is torch that fuses."""
        return self.triton_kernels and not self.compile

    @property
    def casts_weights_once(self) -> bool:
        """Whether weights are cast all at once, and not one by one when they are first read."""
        return self.uses_kernels and self.precision is Precision.BFLOAT16

    @property
    def uses_sparse_last_block(self) -> bool:
        """Whether the last block is spared: compiled, every kind of block would be compiled once more for it."""
        return self.sparse_last_block and not self.compile

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which the network computes."""
        if self.precision is Precision.FLOAT32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


Switch: TypeAlias = Literal["auto", "on", "off"]


def default_run_config(
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    cuda_graphs: Switch = "auto",
    no_kernels: bool = False,
) -> RunConfig:
    """A run with nothing left open, as suits the machine that is there; `replace` changes the rest.

    Steps are recorded where a device is given kernels one by one, and can be given all of them at once. `plain` does
    without kernels of our own, computes the last block everywhere, and one network after the other.
    """
    where = pick_device(device)
    record = where.type == "cuda" if cuda_graphs == "auto" else cuda_graphs == "on"
    return RunConfig(
        device=where,
        precision=pick_precision(where, precision),
        microbatch_tokens=pick_microbatch(where),
        cuda_graphs=record,
        triton_kernels=not no_kernels and kernels_usable(where),
        generator_stream=record and where.type == "cuda" and not no_kernels,
        sparse_last_block=not no_kernels,
        max_in_flight=max(pick_queue(where), int(record)),
    )


def pick_device(requested: str = "auto") -> torch.device:
    """The device that was wished for, or the fastest that is there; one GPU for each process of a machine."""
    if requested == "auto":
        requested = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(requested)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.zeros(1, device=device).item()  # a device may be known and still be unable to hold a number
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(
            f"The device '{requested}' cannot be used here: {reason}. Take --device cpu, or auto."
        ) from error
    return device


def pick_precision(device: torch.device, requested: Literal["auto", "float32", "bfloat16"] = "auto") -> Precision:
    """bfloat16 on a GPU that computes in it, float32 elsewhere, unless something is wished for."""
    if requested != "auto":
        return Precision(requested)
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return Precision.BFLOAT16 if able else Precision.FLOAT32


_MEMORY_FRACTION = 0.7
"""The share of a GPU's memory that a micro-batch may hold; weights, logits and what comes and goes want the rest."""
_MIN_TOKENS, _GPU_TOKENS, _MAX_TOKENS = 4096, 16_384, 131_072
"""Tokens in a micro-batch: what a CPU's cache is near to, what a GPU is busy with, and where no more is gained."""


def pick_microbatch(device: torch.device, bytes_per_token: int = 0) -> int:
    """How many tokens are computed at once: on a CPU what stays near the cache, on a GPU what fills it.

    `held`: bytes that are held of each token, if that is known: then as many as fit into a part of the GPU's memory.
    """
    if device.type != "cuda" or not bytes_per_token:
        return _GPU_TOKENS if device.type in ("cuda", "xpu") else _MIN_TOKENS
    fits = int(_MEMORY_FRACTION * torch.cuda.get_device_properties(device).total_memory / bytes_per_token)
    return min(max(1 << max(fits.bit_length() - 1, 0), _MIN_TOKENS), _MAX_TOKENS)


def kernels_usable(device: torch.device) -> bool:
    """Whether kernels of our own are taken: on a CUDA device, where Triton is there and able to compile one."""
    if device.type != "cuda" or not triton_available():
        return False
    reason = kernel_failure(device)
    if reason:
        warnings.warn(f"Kernels of our own cannot be compiled here ({reason}); plain code is taken.", stacklevel=2)
    return not reason


def pick_queue(device: torch.device) -> int:
    """How many steps may be queued ahead: a GPU must never wait for the host, a CPU does its work at once."""
    return 2 if device.type == "cuda" else 0


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
