"""The course of a recipe: which stage and which task a moment belongs to, and the rows of it.

What arrives: a recipe, a corpus and a seed. What leaves: a lesson for any moment.
What never happens here: state. Stage, task, rows and masks follow from the moment and the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from unmask.corrupt.mask_out import MaskOut
from unmask.errors import CorpusError, RecipeError
from unmask.examples.visits import EveryVisit, Renew
from unmask.feed import Feed
from unmask.keys import Key, Lane, choose
from unmask.objectives.part import Objective, Taught
from unmask.records import Ints
from unmask.shards.corpus import Corpus
from unmask.shards.split import split
from unmask.tasks import Recipe, Task
from unmask.train.course import Crew, Lesson, Moment

HELD_OUT = 0.01
"""The share of a corpus that is never learned from, unless the user says otherwise."""
_TRIAL_SEED = 0
_TRIAL_ROWS = 256
_TRIAL_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Lessons:
    """Lessons of a recipe on a corpus."""

    recipe: Recipe
    seed: int
    feeds: Mapping[tuple[int, int], Feed]
    """By stage and task."""
    objectives: Mapping[tuple[int, int], tuple[Taught, ...]]
    """Likewise: what is asked about these rows."""
    held_out: tuple[Feed, ...]
    """What the run is judged on: the tasks of its longest-lasting stage, on held-out text."""

    @staticmethod
    def of(recipe: Recipe, corpus: Corpus, seed: int, held_out: float = HELD_OUT) -> Lessons:
        """Plan every stage; refuses a corpus that was not segmented into what the recipe reads, and an objective that
        no network can learn yet.
        """
        recipe.check(corpus.layers, str(corpus.folder))
        tasks = {
            (number, place): task
            for number, stage in enumerate(recipe.stages)
            for place, task in enumerate(stage.tasks)
        }
        objectives = {place: learnable(task.learns) for place, task in tasks.items()}
        learn, judge = split(corpus, held_out)
        feeds = {
            (number, place): _planned(task, learn, recipe.stages[number].length, recipe.renew, seed)
            for (number, place), task in tasks.items()
        }
        stage = recipe.stages[_longest(recipe)]
        # The same rows and masks for every seed, so that runs can be compared.
        trial = tuple(_planned(task, judge, stage.length, EveryVisit(), _TRIAL_SEED) for task in stage.tasks)
        return Lessons(recipe, seed, feeds, objectives, trial)

    @property
    def mixed(self) -> bool:
        """Whether tasks differ in what they learn."""
        return len({frozenset(one.name for one in task.learns) for task in self.recipe.tasks}) > 1

    def lesson(self, moment: Moment, crew: Crew) -> Lesson:
        """What this process learns from at this moment."""
        number = self.stage_at(moment.share)
        stage = self.recipe.stages[number]
        place = int(choose(Key.of(self.seed, "task", moment.step).draws(Lane.MIX, 1), stage.shares)[0])
        rows = moment.step * stage.batch + np.arange(stage.batch)
        return self._lesson(self.feeds[number, place], (number, place), crew.shares(rows, stage.length))

    def check(self, crew: Crew) -> None:
        """Refuse a crew that is too large for the batch of some stage."""
        for stage in self.recipe.stages:
            crew.shares(np.arange(stage.batch), stage.length)

    def stage_at(self, share: float) -> int:
        """The stage that a share of the budget falls into."""
        ends = np.cumsum([stage.share for stage in self.recipe.stages])
        # A step belongs to the next stage from its border on; rounding must not move the border.
        return min(int(np.searchsorted(ends, share + 1e-12, side="right")), len(ends) - 1)

    def trial(self) -> tuple[Lesson, ...]:
        """Rows that are never learned from, in pieces that any machine can take at once."""
        number = _longest(self.recipe)
        pieces: list[Lesson] = []
        for place, feed in enumerate(self.held_out):
            rows = np.arange(min(len(feed.plan), _TRIAL_ROWS))
            for part in Crew(micro=_TRIAL_TOKENS).shares(rows, self.recipe.stages[number].length):
                pieces.append(self._lesson(feed, (number, place), (part,)))
        return tuple(pieces)

    def _lesson(self, feed: Feed, place: tuple[int, int], parts: tuple[Ints, ...]) -> Lesson:
        """Rows of a feed, asked what its stage and task ask."""
        task, length = feed.task, self.recipe.stages[place[0]].length
        instances = tuple(feed.at(part) for part in parts)
        return Lesson(instances, self.objectives[place], task.examples.apart, task.name, length)


def _longest(recipe: Recipe) -> int:
    """The stage that lasts longest, the first of them."""
    return max(range(len(recipe.stages)), key=lambda number: recipe.stages[number].share)


def _planned(task: Task, corpus: Corpus, length: int, renew: Renew, seed: int) -> Feed:
    """The feed of a task; refuses text that gives no row, and one without the similar words that the task shows."""
    if shows_similar(task) and not len(corpus.vocab.stand_ins):
        raise CorpusError(
            f"Task '{task.name}' shows similar words, but {corpus.folder} has no table of them, so random ones would "
            f"stand in. Make the table with: unmask vectors --data {corpus.folder}"
        )
    feed = Feed.plan_for(task, corpus, length, renew, seed)
    if not len(feed.plan):
        raise CorpusError(
            f"A part of {corpus.folder} with {corpus.manifest.counts.tokens:,} tokens gives task '{task.name}' no row "
            "at all. Prepare more text, or longer documents."
        )
    return feed


def shows_similar(task: Task) -> bool:
    """Whether a task reads the table of similar words."""
    return isinstance(task.corrupt, MaskOut) and bool(task.corrupt.replace.similar)


def learnable(objectives: Iterable[Objective]) -> tuple[Taught, ...]:
    """The objectives, if all of them have heads or networks; refuses one that no network can learn yet."""
    found: list[Taught] = []
    for objective in objectives:
        if not isinstance(objective, Taught):
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
