"""Batches of one fine-tuning task: a keyed permutation of the examples per epoch, and the dev batches.

Any step is computed without the steps before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.records import InputsAndTargets, Ints
from unmask.core.rng import Key
from unmask.data.input_formats.row_plan import DynamicMasking, EpochSampler
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.objectives.protocol import Objective
from unmask.train.batches.recipe_batches import RankSplit, RunPosition, StepBatch

TASK_NAME = "tune"
EVAL_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class EpochBatches:
    """Batches of examples, epoch after epoch. Batches are always full: they may span two epochs."""

    train: EncodedDataset
    dev: EncodedDataset
    objective: Objective
    batch_size: int
    max_length: int
    seed: int
    task_name: str = TASK_NAME

    @property
    def heads_vary(self) -> bool:
        """All batches have the same objective."""
        return False

    def num_steps(self, epochs: float) -> int:
        """The number of steps for this many epochs."""
        return max(1, int(np.ceil(epochs * len(self.train) / self.batch_size)))

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """The examples of this step for this process."""
        return self._step_batch(*(self.train.take(items) for items, _ in self.micro_batches(position, split)))

    def stage_at(self, progress: float) -> int:
        """There is one stage."""
        return 0

    def micro_batches(self, position: RunPosition, split: RankSplit) -> tuple[tuple[Ints, Key], ...]:
        """The examples of this process in micro-batches, by index, and the random key of each in this epoch."""
        visits = EpochSampler(len(self.train), DynamicMasking(), Key.of(self.seed, self.task_name))
        item, key = visits(position.step * self.batch_size + np.arange(self.batch_size))
        shares = split.micro_batches(np.arange(self.batch_size), self.max_length * self.train.max_group_rows)
        return tuple((item[some], Key(key.state[some])) for some in shares)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """All dev examples, in batches of similar length."""
        return tuple(self._step_batch(self.dev.take(some)) for some in self.dev.batches_by_length(EVAL_BATCH_SIZE))

    def _step_batch(self, *instances: InputsAndTargets) -> StepBatch:
        return StepBatch(
            instances, (self.objective,), attention=PREFIX_LM, task_name=self.task_name, max_length=self.max_length
        )
