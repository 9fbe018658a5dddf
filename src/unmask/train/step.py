"""One training step: forward and backward passes of the micro-batches, gradient clipping, one optimizer step.

Every loss is a sum with a count. The counts of all micro-batches and processes are known before the first forward pass,
so each sum is divided once by the right number (gradient accumulation without a bias). Metrics are copied to the host
without a wait (`AsyncScalars`) and read when a later step has been queued.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from unmask.core.rng import Key
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.batch.bucketing import bucket_for, can_bucket, pad_to_bucket
from unmask.nets.batch.packed_sequences import to_device
from unmask.nets.batch.transfer import batch_to_device
from unmask.nets.kernels.weight_cast import call_with_cast_weights
from unmask.objectives.heads.common import LossSum
from unmask.objectives.protocol import Objective
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.segment_memory import MemorySlot, SegmentMemory

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


class NotFinite(Exception):
    """A loss or a gradient is not a number; the weights have not been moved."""


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """A lesson with its tensors on the device."""

    step_batch: StepBatch
    batches: tuple[Batch, ...]

    @property
    def is_bucketed(self) -> bool:
        """Whether all batches are filled up to a round shape."""
        return all(batch.num_padding for batch in self.batches)

    @staticmethod
    def of(step_batch: StepBatch, device: torch.device, bucket: bool = False) -> DeviceBatch:
        """Collate all micro-batches on the host, even them out if that is wished for and can be, and send them."""
        batches = [collate(one, "cpu", step_batch.attention) for one in step_batch.instances]
        for objective in [one for one in step_batch.objectives if one.prepares_batch]:
            batches = [objective.prepare(batch) for batch in batches]
        if bucket and all(map(can_bucket, batches)):
            room = bucket_for(batches, step_batch.max_length)
            batches = [pad_to_bucket(batch, room) for batch in batches]
        return DeviceBatch(
            step_batch, tuple(batches if device.type == "cpu" else (batch_to_device(one, device) for one in batches))
        )


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Everything that the kernels of a step read."""

    batches: tuple[Batch, ...]
    objectives: tuple[Objective, ...]
    has_targets: tuple[bool, ...]
    """Which objectives are asked anything in this step."""
    max_length: int
    """The longest row that was possible."""
    loss_scale_O: Tensor
    """On the device: what one answer counts in the mean of each objective."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Mean loss and share of right answers, for each objective that was asked anything, and of how many."""

    loss: Mapping[str, float]
    accuracy: Mapping[str, float]
    count: Mapping[str, int]

    def weighted_loss(self, objectives: Iterable[Objective]) -> float:
        """The sum of the losses under the weights of the recipe, which is what runs and trials are compared by."""
        return sum(one.weight * self.loss[one.name] for one in objectives if one.name in self.loss)

    def to_log(self) -> dict[str, object]:
        """The score as a line of the record says it."""
        return {
            "loss": {name: round(value, 6) for name, value in self.loss.items()},
            "accuracy": {name: round(value, 4) for name, value in self.accuracy.items()},
            "count": dict(self.count),
        }


@dataclass(frozen=True, slots=True)
class StepRunner:
    """What a step is done with. `module` is the learner, or the learner as several processes share it."""

    model: MultiHeadModel
    module: MultiHeadModel | DistributedDataParallel
    optimizer: Optimizer
    config: RunConfig
    dist: DistContext
    max_grad_norm: float
    seed: int
    max_in_flight: int = 0
    """How many steps may be queued before the numbers of one are looked at; 0 for an optimizer that cannot skip."""
    non_finite_flag: Tensor = field(default_factory=lambda: torch.zeros(()))
    """On the device: 1 as soon as a queued step was not finite. From then on none moves anything."""
    frozen_until: Mapping[float, Sequence[nn.Parameter]] = field(default_factory=dict)
    """Parameters that begin to move later, by the share of the budget from which on they do."""
    memory: SegmentMemory | None = None
    """The memory of a network with segment recurrence; None for any other network."""
    graph_cache: Callable[[StepInputs], Tensor] | None = None
    """A whole step by way of recordings, where steps are recorded."""

    def unfreeze_due(self, progress: float) -> None:
        """Ask for gradients where parameters move by now; a function of the share, so a resume thaws the same."""
        for since, parameters in self.frozen_until.items():
            for parameter in parameters:
                parameter.requires_grad_(progress >= since)

    def run(self, device_batch: DeviceBatch, counts: Sequence[float], step: int) -> AsyncScalars:
        """A whole step: gradients and a move. Says the norm of the gradient and the sums."""
        work = self._build_inputs(device_batch, counts, step)
        # What is not evened out may read lists of the host, and is computed as it comes.
        compute = self.graph_cache if self.graph_cache and device_batch.is_bucketed else self.run_kernels
        return copy_async(compute(work))

    def run_kernels(self, inputs: StepInputs) -> Tensor:
        """All kernels of a step, which is what can be recorded."""
        return self._apply_gradients(self._gradients(inputs))

    def backward(self, device_batch: DeviceBatch, counts: Sequence[float], step: int) -> Tensor:
        """Gradients of a whole step; returns the sums of losses and of right answers, one column an objective."""
        return self._gradients(self._build_inputs(device_batch, counts, step))

    def apply_gradients(self, sums: Tensor) -> AsyncScalars:
        """Clip and step, unless something is not finite. Says the norm of the gradient and the sums.

        Where steps are queued, nobody looks at the numbers here: a flag on the device keeps the optimizer from moving
        anything in this step and in all that follow, so that the state is still the one before this step when somebody
        does. Otherwise they are looked at before anything moves.
        """
        return copy_async(self._apply_gradients(sums))

    def _build_inputs(self, loaded: DeviceBatch, counts: Sequence[float], step: int) -> StepInputs:
        """What the kernels of a step read, and their draws: seeded once, whatever the step is cut into."""
        seed_dropout(self.seed, step, self.dist.rank)
        # Processes average their gradients, so each counts for as many as there are.
        shares_O = torch.tensor([self.dist.world_size / max(count, 1) for count in counts])
        asked = tuple(map(bool, counts))
        return StepInputs(
            loaded.batches,
            loaded.step_batch.objectives,
            asked,
            loaded.step_batch.max_length,
            to_device(shares_O, self.config.device),
        )

    def _gradients(self, work: StepInputs) -> Tensor:
        """Gradients of all micro-batches, and the sums over them."""
        sums = torch.zeros(2, len(work.objectives), device=self.config.device)
        slots = self.memory.slots(work.batches, work.max_length) if self.memory else (None,) * len(work.batches)
        for number, slot in enumerate(slots):
            sums += self._backward_micro_batch(work, number, slot)
        if self.memory:
            self.memory.keep(slots)
        return sums

    def _backward_micro_batch(self, work: StepInputs, number: int, slot: MemorySlot | None) -> Tensor:
        """Gradients of a micro-batch are added to those that are there; the sums of its losses and right answers."""
        last = number == len(work.batches) - 1
        with self._no_sync(not last), self.config.autocast():
            terms = self._loss_sums(work.batches[number], work.objectives, slot)
            loss = self._loss(terms, work)
            if last:
                loss = loss + self._regularizer(work)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.model.generator_stream.streams:
                self.model.generator_stream.wait()
        return torch.stack([torch.stack([term.total.detach(), term.correct.float()]) for term in terms], dim=1)

    def _loss_sums(self, batch: Batch, objectives: Sequence[Objective], slot: MemorySlot | None) -> tuple[LossSum, ...]:
        """What the module says to a batch; where kernels of our own are taken, weights are cast all at once."""
        terms: tuple[LossSum, ...]
        if self.config.casts_weights_once and self.module is self.model:
            terms = call_with_cast_weights(self.module, torch.bfloat16, batch, objectives, slot)
        else:
            terms = self.module(batch, objectives, slot)
        return terms

    def _apply_gradients(self, sums: Tensor) -> Tensor:
        norm = clip_gradients(self.model.network_parameters(), self.max_grad_norm)
        said = torch.cat([norm.reshape(1), sums.flatten()])
        if self.max_in_flight:
            torch.maximum(self.non_finite_flag, (~said.isfinite().all()).float(), out=self.non_finite_flag)
            self.dist.all_reduce_max_(self.non_finite_flag)
        elif not bool(said.isfinite().all()):
            raise NotFinite
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return said

    def _loss(self, terms: Sequence[LossSum], work: StepInputs) -> Tensor:
        weights: Sequence[float | Tensor] = self.model.balance.weights(work.objectives)
        weighed = zip(terms, weights, work.loss_scale_O.unbind(), strict=True)
        return torch.stack([term.total * (weight * share) for term, weight, share in weighed]).sum()

    def _regularizer(self, work: StepInputs) -> float | Tensor:
        """What the weights of this step cost: once a step, whatever it is cut into, and once for all processes."""
        return self.model.balance.regularizer(
            [one for one, asked in zip(work.objectives, work.has_targets, strict=True) if asked]
        )

    def _no_sync(self, more: bool) -> AbstractContextManager[None]:
        """Gradients cross to the other processes once a step, with the last micro-batch; not while there are more."""
        if more and isinstance(self.module, DistributedDataParallel):
            return self.module.no_sync()
        return contextlib.nullcontext()


def seed_dropout(seed: int, *address: int) -> None:
    """Dropout is drawn from an address too, so a resumed run drops what an undisturbed one would have dropped."""
    torch.manual_seed(int(Key.of(seed, "dropout", *address).state) & 0x7FFFFFFFFFFFFFFF)


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Gradient clipping: scale all gradients so that their global norm is at most `max_norm`; 0 leaves them.

    Returns the norm before clipping as a tensor on the device, so nothing waits for it.
    """
    kept = list(parameters)
    norm = get_total_norm([parameter.grad for parameter in kept if parameter.grad is not None])
    if max_norm:
        clip_grads_with_norm_(kept, max_norm, norm)
    return norm


def set_lr(optimizer: Optimizer, multiplier: float) -> None:
    """Set the learning rate of every group to this part of its peak."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["peak"] * multiplier)
        else:
            group["lr"] = group["peak"] * multiplier


def compute_metrics(
    names: Sequence[str], losses: Sequence[float], correct: Sequence[float], counts: Sequence[float]
) -> Metrics:
    """Sums over everything, divided by counts over everything."""
    held = list(zip(names, losses, correct, counts, strict=True))
    return Metrics(
        {name: total / count for name, total, _, count in held if count},
        {name: right / count for name, _, right, count in held if count},
        {name: int(count) for name, _, _, count in held if count},
    )


@contextlib.contextmanager
def isolated_rng(device: torch.device) -> Iterator[None]:
    """Leave the draws of whoever called us as they were."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
