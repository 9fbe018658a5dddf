"""A step that was begun: its work is queued, and its numbers are on their way.

What arrives: what the loop knows before the device has computed anything. What leaves: the line of the step, as soon as
its numbers are there. What never happens here: looking at a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.train.batches.protocol import StepBatch
from unmask.train.budget import RunProgress
from unmask.train.gpu.async_scalars import AsyncScalars
from unmask.train.rundir.checkpoint import RunState
from unmask.train.step import DeviceBatch, compute_metrics


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
