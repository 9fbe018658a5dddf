"""The batches of a recipe on a corpus: stage, task, rows and masks of any step follow from the step and the seed.

The training loop knows `BatchSource` and `StepBatch` alone, and no recipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from unmask.config.attention_pattern import AttentionPattern
from unmask.core.errors import CorpusError, RecipeError
from unmask.core.records import Cloze, InputsAndTargets, Ints
from unmask.core.rng import DrawPurpose, Key, categorical
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.holdout import split_heldout
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.row_plan import DynamicMasking, MaskingMode
from unmask.objectives.protocol import Objective
from unmask.tasks.batches import TaskBatches
from unmask.tasks.recipe import Recipe, Task


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


HELDOUT_FRACTION = 0.01
"""The share of a corpus that is never learned from, unless the user says otherwise."""
_EVAL_SEED = 0
_EVAL_ROWS = 256
_EVAL_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class RecipeBatches:
    """Lessons of a recipe on a corpus."""

    recipe: Recipe
    seed: int
    task_batches: Mapping[tuple[int, int], TaskBatches]
    """By stage and task."""
    objectives: Mapping[tuple[int, int], tuple[Objective, ...]]
    """Likewise: what is asked about these rows."""
    heldout: tuple[TaskBatches, ...]
    """What the run is judged on: the tasks of its longest-lasting stage, on held-out text."""

    @staticmethod
    def of(recipe: Recipe, corpus: Corpus, seed: int, heldout_fraction: float = HELDOUT_FRACTION) -> RecipeBatches:
        """Plan every stage; refuses a corpus that was not segmented into what the recipe reads, and an objective that
        no network can learn yet.
        """
        recipe.check_corpus(corpus.layers, str(corpus.folder))
        tasks = {
            (number, place): task
            for number, stage in enumerate(recipe.stages)
            for place, task in enumerate(stage.tasks)
        }
        objectives = {place: require_trainable(task.objectives) for place, task in tasks.items()}
        learn, judge = split_heldout(corpus, heldout_fraction)
        feeds = {
            (number, place): _plan_task(task, learn, recipe.stages[number].max_length, recipe.masking, seed)
            for (number, place), task in tasks.items()
        }
        stage = recipe.stages[_longest_stage(recipe)]
        # The same rows and masks for every seed, so that runs can be compared.
        trial = tuple(
            _plan_task(
                _for_evaluation(task, judge, stage.max_length), judge, stage.max_length, DynamicMasking(), _EVAL_SEED
            )
            for task in stage.tasks
        )
        return RecipeBatches(recipe, seed, feeds, objectives, trial)

    @property
    def heads_vary(self) -> bool:
        """Whether tasks differ in what they learn."""
        return len({frozenset(one.name for one in task.objectives) for task in self.recipe.tasks}) > 1

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """What this process learns from at this moment."""
        number = self.stage_at(position.progress)
        stage = self.recipe.stages[number]
        place = int(
            categorical(Key.of(self.seed, "task", position.step).bits(DrawPurpose.MIX, 1), stage.task_weights)[0]
        )
        rows = position.step * stage.batch_size + np.arange(stage.batch_size)
        return self._step_batch(
            self.task_batches[number, place], (number, place), split.micro_batches(rows, stage.max_length)
        )

    def check(self, split: RankSplit) -> None:
        """Refuse a crew that is too large for the batch of some stage."""
        for stage in self.recipe.stages:
            split.micro_batches(np.arange(stage.batch_size), stage.max_length)

    def stage_at(self, progress: float) -> int:
        """The stage that a share of the budget falls into."""
        ends = np.cumsum([stage.fraction for stage in self.recipe.stages])
        # A step belongs to the next stage from its border on; rounding must not move the border.
        return min(int(np.searchsorted(ends, progress + 1e-12, side="right")), len(ends) - 1)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """Rows that are never learned from, in pieces that any machine can take at once."""
        number = _longest_stage(self.recipe)
        pieces: list[StepBatch] = []
        for place, feed in enumerate(self.heldout):
            rows, streams = np.arange(min(len(feed.plan), _EVAL_ROWS)), feed.task.examples.num_streams
            at_once = RankSplit(microbatch_tokens=_EVAL_TOKENS)
            parts = at_once.micro_batches(rows, self.recipe.stages[number].max_length)
            for part in np.split(rows, np.arange(streams, len(rows), streams)) if streams else parts:
                pieces.append(self._step_batch(feed, (number, place), (part,)))
        return tuple(pieces)

    def _step_batch(self, feed: TaskBatches, place: tuple[int, int], parts: tuple[Ints, ...]) -> StepBatch:
        """Rows of a feed, asked what its stage and task ask."""
        task, length = feed.task, self.recipe.stages[place[0]].max_length
        instances = tuple(feed.batch_at(part) for part in parts)
        return StepBatch(instances, self.objectives[place], task.attention, task.name, length)


def _longest_stage(recipe: Recipe) -> int:
    """The stage that lasts longest, the first of them."""
    return max(range(len(recipe.stages)), key=lambda number: recipe.stages[number].fraction)


def _for_evaluation(task: Task, heldout: Corpus, max_length: int) -> Task:
    """The task with as few streams as held-out text allows; any other task as it is."""
    if not isinstance(task.examples, ContiguousStreams):
        return task
    return replace(task, examples=task.examples.for_evaluation(heldout, max_length))


def _plan_task(task: Task, corpus: Corpus, length: int, renew: MaskingMode, seed: int) -> TaskBatches:
    """The feed of a task; refuses text that gives no row, and one without the similar words that the task shows."""
    if uses_similar_words(task) and not len(corpus.vocab.similar_words):
        raise CorpusError(
            f"Task '{task.name}' shows similar words, but {corpus.folder} has no table of them, so random ones would "
            f"stand in. Make the table with: unmask similar-words --data {corpus.folder}"
        )
    if isinstance(task.examples, ContiguousStreams):
        task.examples.check(corpus, length)
    feed = TaskBatches.for_task(task, corpus, length, renew, seed)
    if not len(feed.plan):
        raise CorpusError(
            f"A part of {corpus.folder} with {corpus.manifest.counts.tokens:,} tokens gives task '{task.name}' no row "
            "at all. Prepare more text, or longer documents."
        )
    return feed


def uses_similar_words(task: Task) -> bool:
    """Whether a task reads the table of similar words."""
    return isinstance(task.corruption, MaskTokens) and bool(task.corruption.replace.similar)


def require_trainable(objectives: Iterable[Objective]) -> tuple[Objective, ...]:
    """The objectives, if all of them have heads or networks; refuses one that no network can learn yet."""
    found: list[Objective] = []
    for objective in objectives:
        if not objective.has_head:
            raise RecipeError(
                f"{type(objective).__name__} has no head yet, so no network can learn it. Its rows can be prepared, "
                "walked and audited; to train, take a member without it."
            )
        found.append(objective)
    return tuple(found)


def unigram_entropy(corpus: Corpus) -> float:
    """What a guesser that knows only how often each token occurs would lose on every token, in nats."""
    counts = sum(np.bincount(np.asarray(shard.ids), minlength=corpus.vocab.size) for shard in corpus.shards)
    shares = np.asarray(counts)[np.asarray(counts) > 0] / np.sum(counts)
    return float(-(shares * np.log(shares)).sum())
