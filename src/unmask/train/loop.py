"""The training loop: steps, evaluations and checkpoints until the budget is used up.

The loop knows no objective and no member: it requests batches, runs steps and writes the record. Every random draw is a
function of the step, so a resumed run computes the same bits.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from unmask.core.errors import UserError
from unmask.train.batches.prefetch import PendingBatch, Prefetcher
from unmask.train.batches.recipe_batches import RunPosition, StepBatch
from unmask.train.build_step import TrainingSpec, build_step_runner
from unmask.train.evaluate import evaluate
from unmask.train.graceful_stop import GracefulStop
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.checkpoint import BestEval, RunState
from unmask.train.rundir.run_writer import Listener, LogLine, RunWriter
from unmask.train.schedule import RunProgress, lr_multiplier
from unmask.train.step import (
    AsyncScalars,
    DeviceBatch,
    NotFinite,
    StepRunner,
    compute_metrics,
    copy_async,
    isolated_rng,
    set_lr,
    timestamp,
)

Observer: TypeAlias = Callable[[MultiHeadModel, Sequence[StepBatch]], LogLine]
"""Looks at the learner after a trial, with the lessons of that trial; what it returns is a line of the record."""
_USUAL_REASONS = "Usual reasons: a rate that is too high, too short a warm-up, or broken weights to start from."


def train(
    training: TrainingSpec,
    run: RunConfig,
    dist: DistContext,
    folder: Path,
    listeners: Sequence[Listener] = (),
    observers: Sequence[Observer] = (),
) -> RunState:
    """Train until the budget is used up, going on from the last checkpoint in the folder if there is one."""
    worker = build_step_runner(
        training.model, training.optim, training.source.heads_vary, training.seed, run, dist, training.param_lr
    )
    crew = dist.rank_split(run.microbatch_tokens)
    with (
        RunWriter.open(folder, worker, listeners) as keeping,
        isolated_rng(run.device),
        Prefetcher.open(training.source, crew, worker.config) as loader,
        GracefulStop.installed(dist.is_main) as stop,
    ):
        trial = training.source.eval_batches()
        return _Loop(training, worker, keeping, loader, stop, trial, observers, timestamp(run.device)).run()


@dataclass(slots=True)
class _Loop:
    """A run in progress."""

    training: TrainingSpec
    step_runner: StepRunner
    writer: RunWriter
    prefetcher: Prefetcher
    stop: GracefulStop
    eval_batches: Sequence[StepBatch]
    observers: Sequence[Observer]
    last_scalars: AsyncScalars
    """Those of the last step that was ended, or a mark where the next one begins."""
    started_at: float = 0.0
    """When the run would have begun on the clock of this process, had it never been stopped."""
    is_stopping: bool = False
    """Whether all processes know that one of them is to stop."""
    in_flight: deque[InFlightStep] = field(default_factory=deque)
    """Steps that were begun, and whose numbers nobody has looked at yet."""

    def run(self) -> RunState:
        """Step after step."""
        state = self.writer.state
        self.started_at = time.monotonic() - state.progress.seconds
        if not self.writer.resumed:
            state = self._evaluate(state)
        coming = self._request(state.progress)
        while self._fraction_used(state.progress) < 1 and not self.is_stopping:
            state, coming = self._step(state, coming)
        if self.is_stopping:
            self.writer.checkpoint_writer.wait()
            self.step_runner.dist.barrier()  # whoever has nothing to write would be missed at once
            raise KeyboardInterrupt
        return state

    def _step(self, state: RunState, coming: PendingBatch) -> tuple[RunState, PendingBatch]:
        """Begin a step, and ask for the lesson of the next one; then end the step whose turn it is.

        That is this one, if none may be queued; else one before it, whose numbers have arrived by now.
        """
        loaded, waited = coming.wait()
        size = StepCounts.from_sums(self.step_runner.dist.all_reduce_sum(StepCounts.local_counts(loaded.step_batch)))
        before = state.progress
        after = replace(before, step=before.step + 1, tokens=before.tokens + int(size.tokens))
        coming = self._request(after)
        rate = lr_multiplier(self.training.optim.schedule, before.step, self._fraction_used(before))
        set_lr(self.step_runner.optimizer, rate)
        self.step_runner.unfreeze_due(self._fraction_used(before))
        weighed = copy_async(self.step_runner.model.balance.current_weights(loaded.step_batch.objectives))
        said = self._compute(state, loaded, size.predictions)
        clock, late, leaving = self.step_runner.dist.all_reduce_sum(
            [self._clock(), self.writer.checkpoint_due(), self._is_to_stop()]
        )
        self.is_stopping = bool(leaving)
        after = replace(after, seconds=clock)
        full_rate = self.training.optim.optimizer.lr
        self.in_flight.append(InFlightStep(state, after, loaded, size, full_rate * rate, waited, said, weighed))
        self._finish_steps(self.step_runner.max_in_flight)
        return self._after_step(state, after, bool(late or leaving)), coming

    def _compute(self, state: RunState, loaded: DeviceBatch, counts: Sequence[float]) -> AsyncScalars:
        """Gradients and a move. What they say is looked at when the step is ended."""
        try:
            return self.step_runner.run(loaded, counts, state.progress.step)
        except NotFinite as error:
            raise self._non_finite_error(state, loaded) from error

    def _finish_steps(self, queue: int) -> None:
        """Look at the numbers of all steps but the last few, and record them."""
        while len(self.in_flight) > queue:
            step = self.in_flight.popleft()
            norm, *sums = step.scalars.read()
            sums = self.step_runner.dist.all_reduce_sum(sums)
            if not all(map(math.isfinite, (norm, *sums))):
                raise self._non_finite_error(step.before, step.device_batch)
            spent, self.last_scalars = step.scalars.seconds_since(self.last_scalars), step.scalars
            self.writer.add(step.log_line(self._fraction_used(step.after), norm, sums, spent, self._clock()))

    def _non_finite_error(self, state: RunState, loaded: DeviceBatch) -> UserError:
        """Keep the batch and the state before it, which is still that of the network."""
        where = self.writer.dump_failure(state, loaded)
        batch = "batch" if self.step_runner.dist.world_size == 1 else "first process's rows"
        return UserError(
            f"The loss or its gradient is not finite in step {state.progress.step + 1}, so the run stops. The {batch} "
            f"and the state before it are in {where}. {_USUAL_REASONS}"
        )

    def _after_step(self, state: RunState, after: RunProgress, late: bool) -> RunState:
        """What is due when a step is over: a trial with a checkpoint, a checkpoint alone, or nothing."""
        due = self._fraction_used(after) >= 1 or self._evals_due(after) > self._evals_due(state.progress)
        state = replace(state, progress=after)
        if due or late:
            self._finish_steps(queue=0)  # what is judged or saved must be sound, and the record must lead up to it
        if late and not due:
            self.writer.save(state)
        return self._evaluate(state) if due else state

    def _evaluate(self, state: RunState) -> RunState:
        """A trial, then a checkpoint that knows its result."""
        found = evaluate(self.step_runner.model, self.eval_batches, self.step_runner.config, self.step_runner.dist)
        loss = found.weighted_loss(
            {one.name: one for lesson in self.eval_batches for one in lesson.objectives}.values()
        )
        if not math.isfinite(loss):
            raise UserError(
                f"The loss on held-out text is not finite after step {state.progress.step}, so the run stops without "
                f"saving these weights. {_USUAL_REASONS}"
            )
        if loss < state.best.loss:
            state = replace(state, best=BestEval(loss, state.progress.step))
        spent = {"tokens": state.progress.tokens, "seconds": round(state.progress.seconds, 3)}
        self.writer.add({"kind": "eval", "step": state.progress.step, **found.to_log(), **spent})
        for observer in self.observers if self.step_runner.dist.is_main else ():
            self.writer.add({**observer(self.step_runner.model, self.eval_batches), "step": state.progress.step})
        if state.progress.step:
            self.writer.save(state)
        self.last_scalars = timestamp(self.step_runner.config.device)
        self.is_stopping = any(self.step_runner.dist.all_reduce_sum([self._is_to_stop()]))
        return state

    def _is_to_stop(self) -> bool:
        """Whether the user wants it, or nobody looks on any more."""
        return self.stop.requested or self.writer.output_closed

    def _request(self, progress: RunProgress) -> PendingBatch:
        """Begin with the lesson of a moment in the background."""
        return self.prefetcher.request(RunPosition(progress.step, self._fraction_used(progress)))

    def _evals_due(self, progress: RunProgress) -> int:
        """How many trials are due until then; rounding must not move one."""
        return math.floor(self._fraction_used(progress) * self.step_runner.config.num_evals + 1e-9)

    def _fraction_used(self, progress: RunProgress) -> float:
        return self.training.budget.fraction_used(progress)

    def _clock(self) -> float:
        """The time of the run; 0 for all processes but the first, so that their sum is its time."""
        return time.monotonic() - self.started_at if self.step_runner.dist.is_main else 0.0


@dataclass(frozen=True, slots=True)
class StepCounts:
    """How much a step learns from, over all processes."""

    predictions: Sequence[float]
    """Answers, one number an objective."""
    tokens: float
    rows: float
    masked: float

    @staticmethod
    def local_counts(step_batch: StepBatch) -> list[float]:
        """What each process adds to it, as plain numbers."""
        return [*step_batch.num_predictions(), step_batch.num_tokens, step_batch.num_rows, step_batch.num_masked]

    @staticmethod
    def from_sums(sums: Sequence[float]) -> StepCounts:
        """The sums of all processes."""
        return StepCounts(sums[:-3], *sums[-3:])


@dataclass(frozen=True, slots=True)
class InFlightStep:
    """A step that was begun."""

    before: RunState
    after: RunProgress
    device_batch: DeviceBatch
    """Kept until the numbers are there: if they are not finite, whoever looks for the reason needs the batch."""
    counts: StepCounts
    lr: float
    data_wait_seconds: float
    """Seconds that the loop waited for the lesson."""
    scalars: AsyncScalars
    """The norm of the gradient, then the sums of losses and of right answers of this process."""
    loss_weights: AsyncScalars
    """The learned weights of the losses; empty where they are fixed."""

    def log_line(
        self, progress: float, grad_norm: float, sums: Sequence[float], step_seconds: float, run_seconds: float
    ) -> dict[str, object]:
        """The line of the step, from the sums of all processes and what the clock says."""
        lesson, size = self.device_batch.step_batch, self.counts
        names = [one.name for one in lesson.objectives]
        found = compute_metrics(names, sums[: len(names)], sums[len(names) :], size.predictions)
        weights = {name: round(weight, 6) for name, weight in zip(names, self.loss_weights.read(), strict=False)}
        return {
            "kind": "step",
            "step": self.after.step,
            "progress": round(progress, 6),
            "task": lesson.task_name,
            "length": lesson.max_length,
            **found.to_log(),
            **({"weight": weights} if weights else {}),
            "lr": self.lr,
            "grad_norm": round(grad_norm, 4),
            "padding_fraction": round(1 - size.tokens / (size.rows * lesson.max_length), 4),
            "masked_fraction": round(size.masked / size.tokens, 4),
            "tokens": self.after.tokens,
            "tokens_per_second": round(size.tokens / max(step_seconds, 1e-9), 1),
            "data_wait_seconds": round(self.data_wait_seconds, 6),
            "seconds": round(run_seconds, 3),
        }
