"""Estimates steps, tokens, time, memory and disk of a run from a short measured warm-up.

The measured steps run at a learning rate of 0 with an optimizer that is discarded, so no weight changes.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from unmask.nets.encoder import num_parameters
from unmask.train.batches.recipe_batches import RunPosition, StepBatch
from unmask.train.build_step import TrainingSpec, build_step_runner
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.schedule import Budget, StepBudget, TimeBudget
from unmask.train.step import DeviceBatch, NotFinite, StepRunner, isolated_rng, set_lr

_REPEATS = 3
_MANY_MICRO_BATCHES = 4
"""Micro-batches in a recorded step that is held against one of a single micro-batch."""
_MIN_GRADIENT_FRACTION = 0.1
"""The least share of a captured step that its gradients take."""
_BYTES_PER_PARAMETER = 4 * 3
"""A checkpoint holds each parameter and two averages of it in float32."""


@dataclass(frozen=True, slots=True)
class CostProbe:
    """A moment that stands for a share of the run."""

    position: RunPosition
    fraction: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a run will cost. Steps, tokens and time are rounded guesses; one of them is the budget itself."""

    num_parameters: int
    steps: float
    tokens: float
    seconds: float
    tokens_per_second: float
    memory_bytes: float
    """Bytes in use on the device, or of this process if that is a CPU."""
    disk_bytes: float
    """Bytes of all checkpoints that are kept."""


def estimate_cost(
    training: TrainingSpec, run: RunConfig, dist: DistContext, probes: Sequence[CostProbe]
) -> CostEstimate:
    """Measure one step for each probe, and project the budget from it."""
    alone = DistContext(dist.rank, 1, dist.device)
    run = replace(run, cuda_graphs=run.cuda_graphs and dist.world_size == 1)
    worker = build_step_runner(training.model, training.optim, False, training.seed, run, alone)
    set_lr(worker.optimizer, 0.0)
    with isolated_rng(run.device):
        costs = [_MeasuredStep.measure(worker, training, probe, dist).cost(training.budget) for probe in probes]
    steps, tokens, seconds = (sum(column) for column in zip(*costs, strict=True))
    if not isinstance(training.budget, TimeBudget):
        judged = run.num_evals * sum(lesson.num_tokens for lesson in training.source.eval_batches())
        seconds += judged * seconds / tokens / 3  # a forward pass is about a third of a step
    memory, parameters = _memory_in_use(worker.config), num_parameters(training.model)
    del worker
    gc.collect()
    return CostEstimate(
        num_parameters=parameters,
        steps=steps,
        tokens=tokens,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        memory_bytes=memory,
        disk_bytes=parameters * _BYTES_PER_PARAMETER * (run.keep_checkpoints + 1.0),  # and the best one
    )


@dataclass(frozen=True, slots=True)
class _MeasuredStep:
    """What one step costs in one part of the run."""

    fraction: float
    tokens: float
    seconds: float

    @staticmethod
    def measure(worker: StepRunner, training: TrainingSpec, probe: CostProbe, processes: DistContext) -> _MeasuredStep:
        """Measure one micro-batch; the others take as long."""
        run = worker.config
        lesson = training.source.batch(probe.position, processes.rank_split(run.microbatch_tokens))
        piece = StepBatch(
            lesson.instances[:1], lesson.objectives, lesson.attention, lesson.task_name, lesson.max_length
        )
        loaded = DeviceBatch.of(piece, run.device, run.has_few_shapes)
        several = min(len(lesson.instances), _MANY_MICRO_BATCHES)
        compute, move = (
            _measure_captured(worker, loaded, several) if worker.graph_cache else _measure_eager(worker, loaded)
        )
        whole = lesson.num_tokens / piece.num_tokens
        return _MeasuredStep(probe.fraction, lesson.num_tokens * processes.world_size, compute * whole + move)

    def cost(self, budget: Budget) -> tuple[float, float, float]:
        """Steps, tokens and seconds of this part under a budget."""
        if isinstance(budget, StepBudget):
            steps = budget.count * self.fraction
        elif isinstance(budget, TimeBudget):
            steps = budget.count * 3600 * self.fraction / self.seconds
        else:
            steps = budget.count * self.fraction / self.tokens
        return steps, steps * self.tokens, steps * self.seconds


def _measure_eager(worker: StepRunner, loaded: DeviceBatch) -> tuple[float, float]:
    """Seconds for the gradients of a micro-batch, and for a move."""
    counts = _counts(loaded)

    def gradients_and_move() -> tuple[float, float]:
        began = time.perf_counter()
        sums = worker.backward(loaded, counts, 0)
        _synchronize(worker.config.device)
        between = time.perf_counter()
        with suppress(NotFinite):  # the first step of the run will raise it, and keep what led to it
            worker.apply_gradients(sums)
        worker.optimizer.zero_grad(set_to_none=True)
        _synchronize(worker.config.device)
        return between - began, time.perf_counter() - between

    compute, move = _min_times(gradients_and_move, made=1)
    return compute, move


def _measure_captured(worker: StepRunner, loaded: DeviceBatch, several: int) -> tuple[float, float]:
    """The same of a recorded step, which is one piece: what several micro-batches take beyond one is theirs."""
    counts = _counts(loaded)

    def steps() -> Iterator[float]:
        for many in sorted({1, several}):
            began = time.perf_counter()
            worker.run(replace(loaded, batches=loaded.batches * many), counts, 0)
            _synchronize(worker.config.device)
            yield time.perf_counter() - began

    once, *more = _min_times(steps, made=2)
    if not more:
        return once, 0.0  # a whole step
    compute = min(max((more[0] - once) / (several - 1), _MIN_GRADIENT_FRACTION * once), once)
    return compute, once - compute


def _counts(loaded: DeviceBatch) -> list[int]:
    return [max(one, 1) for one in loaded.step_batch.num_predictions()]


def _min_times(times: Callable[[], Iterable[float]], made: int) -> list[float]:
    """The smallest of some times, each for itself: other work on the machine only ever makes a step slower.

    The first turns do not count: in them everything is `made` that is made once, recordings in the second.
    """
    turns = [list(times()) for _ in range(made + _REPEATS)]
    return [min(found) for found in zip(*turns[made:], strict=True)]


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _memory_in_use(run: RunConfig) -> float:
    """What is held; where steps are recorded also what only they may use, which does not count as in use."""
    if run.device.type == "cuda":
        most = torch.cuda.max_memory_reserved if run.cuda_graphs else torch.cuda.max_memory_allocated
        return float(most(run.device))
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
