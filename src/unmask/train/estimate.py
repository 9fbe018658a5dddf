"""What a run will cost, from a short measured warm-up.

What arrives: a training that has not begun. What leaves: tokens, steps, time, memory and disk.
What never happens here: learning. The measured steps are taken at rate 0 with an optimiser that is thrown away.
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

from unmask.nets.transformer import count
from unmask.train.budget import Budget, Hours, Steps
from unmask.train.course import Lesson, Moment
from unmask.train.optim import set_rate
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.train.step import Loaded, NotFinite, Worker, own_draws
from unmask.train.training import Training
from unmask.train.worker import make_worker

_REPEATS = 3
_SEVERAL = 4
"""Micro-batches in a recorded step that is held against one of a single micro-batch."""
_LEAST = 0.1
"""The share of a recorded step that its gradients take at least, whatever the clock says."""
_BYTES = 4 * 3
"""A checkpoint holds each parameter and two averages of it in float32."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A moment that stands for a share of the run."""

    moment: Moment
    share: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will cost. Steps, tokens and time are rounded guesses; one of them is the budget itself."""

    parameters: int
    steps: float
    tokens: float
    seconds: float
    tokens_per_second: float
    memory: float
    """Bytes in use on the device, or of this process if that is a CPU."""
    disk: float
    """Bytes of all checkpoints that are kept."""


def estimate(training: Training, run: Run, processes: Processes, probes: Sequence[Probe]) -> Estimate:
    """Measure one step for each probe, and project the budget from it."""
    alone = Processes(processes.rank, 1, processes.device)
    run = replace(run, graphs=run.graphs and processes.world == 1)
    worker = make_worker(training.learner, training.descent, False, training.seed, run, alone)
    set_rate(worker.optimizer, 0.0)
    with own_draws(run.device):
        costs = [_Part.measured(worker, training, probe, processes).cost(training.budget) for probe in probes]
    steps, tokens, seconds = (sum(column) for column in zip(*costs, strict=True))
    if not isinstance(training.budget, Hours):
        judged = run.trials * sum(lesson.tokens for lesson in training.course.trial())
        seconds += judged * seconds / tokens / 3  # a forward pass is about a third of a step
    memory, parameters = _memory(worker.run), count(training.learner)
    del worker
    gc.collect()
    return Estimate(
        parameters=parameters,
        steps=steps,
        tokens=tokens,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        memory=memory,
        disk=parameters * _BYTES * (run.keep + 1.0),  # and the best one
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What one step costs in one part of the run."""

    share: float
    tokens: float
    seconds: float

    @staticmethod
    def measured(worker: Worker, training: Training, probe: Probe, processes: Processes) -> _Part:
        """One micro-batch of the lesson; the others take as long."""
        run = worker.run
        lesson = training.course.lesson(probe.moment, processes.crew(run.micro))
        piece = Lesson(lesson.instances[:1], lesson.objectives, lesson.apart, lesson.place, lesson.length)
        loaded = Loaded.of(piece, run.device, run.fixed)
        several = min(len(lesson.instances), _SEVERAL)
        compute, move = _recorded(worker, loaded, several) if worker.repeats else _in_turn(worker, loaded)
        whole = lesson.tokens / piece.tokens
        return _Part(probe.share, lesson.tokens * processes.world, compute * whole + move)

    def cost(self, budget: Budget) -> tuple[float, float, float]:
        """Steps, tokens and seconds of this part under a budget."""
        if isinstance(budget, Steps):
            steps = budget.count * self.share
        elif isinstance(budget, Hours):
            steps = budget.count * 3600 * self.share / self.seconds
        else:
            steps = budget.count * self.share / self.tokens
        return steps, steps * self.tokens, steps * self.seconds


def _in_turn(worker: Worker, loaded: Loaded) -> tuple[float, float]:
    """Seconds for the gradients of a micro-batch, and for a move."""
    counts = _counts(loaded)

    def gradients_and_move() -> tuple[float, float]:
        began = time.perf_counter()
        sums = worker.backward(loaded, counts, 0)
        _settle(worker.run.device)
        between = time.perf_counter()
        with suppress(NotFinite):  # the first step of the run will say so, and keep what led to it
            worker.move(sums)
        worker.optimizer.zero_grad(set_to_none=True)
        _settle(worker.run.device)
        return between - began, time.perf_counter() - between

    compute, move = _quickest(gradients_and_move, made=1)
    return compute, move


def _recorded(worker: Worker, loaded: Loaded, several: int) -> tuple[float, float]:
    """The same of a recorded step, which is one piece: what several micro-batches take beyond one is theirs."""
    counts = _counts(loaded)

    def steps() -> Iterator[float]:
        for many in sorted({1, several}):
            began = time.perf_counter()
            worker.take(replace(loaded, batches=loaded.batches * many), counts, 0)
            _settle(worker.run.device)
            yield time.perf_counter() - began

    once, *more = _quickest(steps, made=2)
    if not more:
        return once, 0.0  # a whole step
    compute = min(max((more[0] - once) / (several - 1), _LEAST * once), once)
    return compute, once - compute


def _counts(loaded: Loaded) -> list[int]:
    return [max(one, 1) for one in loaded.lesson.asked()]


def _quickest(times: Callable[[], Iterable[float]], made: int) -> list[float]:
    """The smallest of some times, each for itself: other work on the machine only ever makes a step slower.

    The first turns do not count: in them everything is `made` that is made once, recordings in the second.
    """
    turns = [list(times()) for _ in range(made + _REPEATS)]
    return [min(found) for found in zip(*turns[made:], strict=True)]


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _memory(run: Run) -> float:
    """What is held; where steps are recorded also what only they may use, which does not count as in use."""
    if run.device.type == "cuda":
        most = torch.cuda.max_memory_reserved if run.graphs else torch.cuda.max_memory_allocated
        return float(most(run.device))
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
