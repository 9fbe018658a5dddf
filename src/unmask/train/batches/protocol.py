"""What the training loop asks for: the batch of a step, as a function of its position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unmask.config.attention_pattern import AttentionPattern
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, InputsAndTargets, Ints
from unmask.objectives.protocol import Objective


@dataclass(frozen=True, slots=True)
class RunPosition:
    """How far a run has come."""

    step: int
    """Steps that are finished."""
    progress: float
    """The share of the budget that is used up, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class RankSplit:
    """Who asks: this process of how many, and how much it takes at once."""

    rank: int = 0
    world_size: int = 1
    microbatch_tokens: int = 1 << 62
    """Most tokens in a micro-batch."""

    def micro_batches(self, rows: Ints, max_length: int) -> tuple[Ints, ...]:
        """The rows of this process, in micro-batches, if rows are at most `length` tokens long.

        Every process gets equally many micro-batches, and none is empty.
        """
        if len(rows) < self.world_size:
            raise RecipeError(
                f"{self.world_size} processes share the rows of a step, but there are only {len(rows)}. Take fewer "
                "processes, or a larger batch."
            )
        at_once = max(self.microbatch_tokens // max_length, 1)
        most = -(-len(rows) // self.world_size)
        parts = min(-(-most // at_once), len(rows) // self.world_size)
        return tuple(np.array_split(np.array_split(rows, self.world_size)[self.rank], parts))


SINGLE_PROCESS = RankSplit()


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The rows that one process learns from in one step, and what is asked about them."""

    instances: tuple[InputsAndTargets, ...]
    """One for each micro-batch."""
    objectives: tuple[Objective, ...]
    attention: AttentionPattern
    """Which positions of a row read which."""
    task_name: str
    """What the record calls it: the name of the task."""
    max_length: int
    """The longest row that was possible; what is missing to it would be padding elsewhere."""

    def num_predictions(self) -> tuple[int, ...]:
        """How many answers each objective is judged on, over all micro-batches."""
        return tuple(sum(one.num_predictions(instance) for instance in self.instances) for one in self.objectives)

    @property
    def num_tokens(self) -> int:
        """Real tokens; there is no padding."""
        return sum(len(instance.inputs.ids) for instance in self.instances)

    @property
    def num_rows(self) -> int:
        """Rows in all micro-batches."""
        return sum(len(instance.inputs.rows) - 1 for instance in self.instances)

    @property
    def num_masked(self) -> int:
        """Tokens that a cloze asks for."""
        targets = (target for instance in self.instances for target in instance.targets)
        return sum(len(target.positions) for target in targets if isinstance(target, Cloze))


class BatchSource(Protocol):
    """Lessons for every moment of a run, and a trial that is always the same."""

    @property
    def heads_vary(self) -> bool:
        """Whether lessons differ in what they ask, so that a head may rest in some steps."""

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """What this process learns from now."""

    def stage_at(self, progress: float) -> int:
        """The stage that a share of the budget falls into: within one, a lesson follows from its step alone."""

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """Rows that are never learned from, always under the same draws."""
