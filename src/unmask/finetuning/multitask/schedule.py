"""Batches of multi-task learning: each step is one batch of one task, in mixed or alternating order (MT-DNN).

An epoch is a keyed permutation of the batches of all tasks, so any step is computed without the steps before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.attention_pattern import RowCoordinates
from unmask.core.records import InputsAndTargets, Ints, Target
from unmask.core.rng import Key, permuted_index
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.objectives.protocol import Objective, PredictionSites
from unmask.train.batches.recipe_batches import RankSplit, RunPosition, StepBatch

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


class TaskOrder(StrEnum):
    """The order of the batches of an epoch."""

    MIXED = "mixed"
    """Batches of all tasks, shuffled (Liu et al., 2019, algorithm 1)."""
    ALTERNATING = "alternating"
    """One task after another, all batches of a task together."""


@dataclass(frozen=True, slots=True)
class WeightedObjective(Objective):
    """An objective with another loss weight."""

    objective: Objective
    weight: float
    prepares_batch: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name of the objective."""
        return self.objective.name

    @property
    def target_type(self) -> type[Target]:
        """The target type of the objective."""
        return self.objective.target_type

    @property
    def facts(self) -> frozenset[str]:
        """The row facts of the objective."""
        return self.objective.facts

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """The prediction sites of the objective."""
        return self.objective.prediction_sites(sample)

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The head of the objective."""
        return self.objective.build_head(backbone)

    def prepare(self, batch: Batch) -> Batch:
        """The batch as prepared by the objective."""
        return self.objective.prepare(batch)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """The predictions of the objective."""
        return self.objective.num_predictions(instance)


@dataclass(frozen=True, slots=True)
class MultiTaskBatches:
    """Batches of several tasks, epoch after epoch. Every task has the same batches as in single-task fine-tuning."""

    parts: tuple[EpochBatches, ...]
    epochs: float
    order: TaskOrder
    seed: int

    @property
    def heads_vary(self) -> bool:
        """Whether batches differ in their objective."""
        return len(self.parts) > 1

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objective of each task."""
        return tuple(part.objective for part in self.parts)

    @property
    def num_steps(self) -> int:
        """The batches of all tasks in all epochs."""
        return int(self._batches_before()[-1].sum())

    def locate_step(self, step: int) -> tuple[int, int]:
        """The task of a step, and the index among the batches of that task."""
        begun_EN = self._batches_before()
        before_E = begun_EN.sum(axis=1)
        step %= int(before_E[-1])  # the loop prefetches one batch more than it needs
        epoch = int(np.searchsorted(before_E, step, side="right")) - 1
        ends_N = np.cumsum(begun_EN[epoch + 1] - begun_EN[epoch])
        index = np.array([step - before_E[epoch]])
        if self.order is TaskOrder.MIXED:
            index = permuted_index(index, int(ends_N[-1]), Key.of(self.seed, "mix", epoch))
        task = int(np.searchsorted(ends_N, index[0], side="right"))
        # counted from the end of the batches of this task
        return task, int(begun_EN[epoch + 1, task] - (ends_N[task] - index[0]))

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """A batch of one task."""
        task, number = self.locate_step(position.step)
        return self.parts[task].batch(RunPosition(number, position.progress), split)

    def stage_at(self, progress: float) -> int:
        """There is one stage."""
        return 0

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """The dev batches of all tasks."""
        return tuple(batch for part in self.parts for batch in part.eval_batches())

    def _batches_before(self) -> Ints:
        """The batches of each task before each epoch, and in the last row before the end.

        A batch that spans two epochs belongs to the first one.
        """
        edges_E = np.append(np.arange(np.ceil(self.epochs)), self.epochs)
        begun_EN: Ints = np.array([[part.num_steps(edge) if edge else 0 for part in self.parts] for edge in edges_E])
        return begun_EN
