"""The course of several tasks on one trunk: batches of all of them, each from one task alone.

What arrives: the course of each task. What leaves: the lesson of any moment.
What never happens here: a shuffled list, or a sum of losses of several tasks. One step is one batch of one task; an
epoch is a keyed permutation of all their batches, so any step is computed without the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from unmask.config.attention_pattern import RowCoordinates
from unmask.core.records import InputsAndTargets, Ints, Target
from unmask.core.rng import Key, permuted_index
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.objectives.protocol import Objective, PredictionSites
from unmask.train.batches.protocol import RankSplit, RunPosition, StepBatch

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


class TaskOrder(StrEnum):
    """In which order the batches of an epoch come."""

    MIXED = "mixed"
    """Batches of all tasks, shuffled (Liu et al., 2019, algorithm 1)."""
    ALTERNATING = "alternating"
    """One task after another, all of its batches in a row. What comes last is remembered best."""


@dataclass(frozen=True, slots=True)
class WeightedObjective(Objective):
    """An objective whose losses count more or less than they did."""

    objective: Objective
    weight: float

    @property
    def name(self) -> str:
        """That of the objective."""
        return self.objective.name

    @property
    def target_type(self) -> type[Target]:
        """What the objective reads."""
        return self.objective.target_type

    @property
    def facts(self) -> frozenset[str]:
        """What the objective must be told."""
        return self.objective.facts

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """What the objective asks."""
        return self.objective.prediction_sites(sample)

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The head of the objective."""
        return self.objective.build_head(backbone)

    def prepare(self, batch: Batch) -> Batch:
        """What the objective makes of a batch, if it does that."""
        return self.objective.prepare(batch)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """How many answers the objective is judged on."""
        return self.objective.num_predictions(instance)


@dataclass(frozen=True, slots=True)
class MultiTaskBatches:
    """Batches of several tasks, epoch after epoch; implements `Course`.

    Every task has exactly the batches that it would have alone in as many epochs.
    """

    parts: tuple[EpochBatches, ...]
    epochs: float
    order: TaskOrder
    seed: int

    @property
    def heads_vary(self) -> bool:
        """Whether lessons differ in what they ask."""
        return len(self.parts) > 1

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is learned, one for each task."""
        return tuple(part.objective for part in self.parts)

    @property
    def num_steps(self) -> int:
        """The batches of all tasks in all epochs."""
        return int(self._batches_before()[-1].sum())

    def locate_step(self, step: int) -> tuple[int, int]:
        """The task of a step, and which of its own batches it is."""
        begun_EN = self._batches_before()
        before_E = begun_EN.sum(axis=1)
        step %= int(before_E[-1])  # the loop fetches one lesson more than it needs
        epoch = int(np.searchsorted(before_E, step, side="right")) - 1
        ends_N = np.cumsum(begun_EN[epoch + 1] - begun_EN[epoch])
        place = np.array([step - before_E[epoch]])
        if self.order is TaskOrder.MIXED:
            place = permuted_index(place, int(ends_N[-1]), Key.of(self.seed, "mix", epoch))
        task = int(np.searchsorted(ends_N, place[0], side="right"))
        # Counted from the end of the task's batches: where those before it end is of no matter then.
        return task, int(begun_EN[epoch + 1, task] - (ends_N[task] - place[0]))

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """A batch of one task."""
        task, number = self.locate_step(position.step)
        return self.parts[task].batch(RunPosition(number, position.progress), split)

    def stage_at(self, progress: float) -> int:
        """There is one stage."""
        return 0

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """The questions of all tasks to be judged by."""
        return tuple(lesson for part in self.parts for lesson in part.eval_batches())

    def _batches_before(self) -> Ints:
        """How many batches of each task have come before each epoch; in the last row, before the end.

        A batch that an epoch begins and the next one fills up belongs to the first of the two.
        """
        edges_E = np.append(np.arange(np.ceil(self.epochs)), self.epochs)
        begun_EN: Ints = np.array([[part.num_steps(edge) if edge else 0 for part in self.parts] for edge in edges_E])
        return begun_EN
