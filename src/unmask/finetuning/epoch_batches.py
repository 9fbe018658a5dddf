"""The course of a fine-tune: questions in a new order every epoch, and questions to be judged by.

What arrives: exercises. What leaves: the lesson of any moment.
What never happens here: a shuffled list. An epoch is a keyed permutation, so any step is computed without the others.
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
from unmask.train.batches.protocol import RankSplit, RunPosition, StepBatch

TASK_NAME = "tune"
EVAL_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class EpochBatches:
    """Batches of questions, epoch after epoch; implements `Course`.

    Batches are always full: the last one of an epoch is filled up with the first questions of the next.
    """

    train: EncodedDataset
    dev: EncodedDataset
    objective: Objective
    batch_size: int
    max_length: int
    seed: int
    task_name: str = TASK_NAME

    @property
    def heads_vary(self) -> bool:
        """Every lesson asks the same."""
        return False

    def num_steps(self, epochs: float) -> int:
        """How many steps show every question this many times."""
        return max(1, int(np.ceil(epochs * len(self.train) / self.batch_size)))

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """The questions of this step that fall to this process."""
        return self._step_batch(*(self.train.take(items) for items, _ in self.micro_batches(position, split)))

    def stage_at(self, progress: float) -> int:
        """There is one stage."""
        return 0

    def micro_batches(self, moment: RunPosition, crew: RankSplit) -> tuple[tuple[Ints, Key], ...]:
        """The questions of this process in micro-batches, by number, and the key of each at this visit."""
        visits = EpochSampler(len(self.train), DynamicMasking(), Key.of(self.seed, self.task_name))
        item, key = visits(moment.step * self.batch_size + np.arange(self.batch_size))
        shares = crew.micro_batches(np.arange(self.batch_size), self.max_length * self.train.max_group_rows)
        return tuple((item[some], Key(key.state[some])) for some in shares)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """All questions to be judged by, those of like length together."""
        return tuple(self._step_batch(self.dev.take(some)) for some in self.dev.batches_by_length(EVAL_BATCH_SIZE))

    def _step_batch(self, *instances: InputsAndTargets) -> StepBatch:
        return StepBatch(
            instances, (self.objective,), attention=PREFIX_LM, task_name=self.task_name, max_length=self.max_length
        )
