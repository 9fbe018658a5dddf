"""What pre-training costs in floating point operations: of a lesson exactly, of a record nearly, of a budget ahead.

What arrives: the lessons of a recipe. What leaves: a `Meter`.
What never happens here: counting trials. They are for the onlooker, and no network learns from them.

A record says how many tokens and answers a step had, but not how long its rows were. For attention, which grows with
their squares, a sample of lessons stands in; it is a few per cent of the whole for rows of some hundred tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.errors import RecipeError
from unmask.nets.flops import STEP, Cost, trunk_cost
from unmask.nets.trunk import Trunk
from unmask.objectives.part import Counted, Objective
from unmask.records import Instance
from unmask.tasks import Recipe
from unmask.train.lessons import Lessons, learnable

_SAMPLE = 512
"""Rows of a task that are looked at."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much there is to compute in some rows."""

    rows: int
    tokens: int
    pairs: int
    """Pairs of tokens of which one looks at the other."""
    asked: Mapping[str, int]
    """Answers, by objective."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run had used up at some step."""

    step: int
    tokens: int
    seconds: float
    flops: float


@dataclass(frozen=True, slots=True)
class Meter:
    """What the steps of a recipe cost."""

    recipe: Recipe
    trunk: Cost
    heads: Mapping[str, Cost]
    sample: Mapping[tuple[int, int], Load]
    """Some rows of every task, by stage and task."""

    @staticmethod
    def of(lessons: Lessons, vocabulary: int) -> Meter:
        """Look at some rows of every task."""
        recipe = lessons.recipe
        heads = {one.name: _cost(one, recipe.trunk, vocabulary) for one in recipe.objectives}
        sample = {
            (number, place): load_of(
                feed.at(np.arange(min(len(feed.plan), _SAMPLE))),
                recipe.stages[number].tasks[place].learns,
                feed.task.examples.apart,
            )
            for (number, place), feed in lessons.feeds.items()
        }
        return Meter(recipe, trunk_cost(recipe.trunk), heads, sample)

    def forward(self, load: Load) -> float:
        """One pass over some rows."""
        heads = (self.heads[name].forward(load.tokens, load.pairs, count) for name, count in load.asked.items())
        return self.trunk.forward(load.tokens, load.pairs) + sum(heads)

    def step(self, load: Load) -> float:
        """A forward and a backward pass over some rows."""
        return STEP * self.forward(load)

    def mean_step(self) -> float:
        """What a step costs on average over the whole run."""
        total = 0.0
        for number, stage in enumerate(self.recipe.stages):
            for place, share in enumerate(stage.shares):
                load = self.sample[number, place]
                total += stage.share * share * stage.batch * self.step(load) / load.rows
        return total

    def steps(self, flops: float) -> int:
        """How many steps come nearest to a budget; refuses one that is not enough for a single step."""
        mean = self.mean_step()
        if not mean / 2 <= flops < float("inf"):
            raise RecipeError(
                f"A budget of {flops:.3g} FLOPs is not enough for one step of {self.recipe.name}, which costs about "
                f"{mean:.3g}. Give more, or make the step smaller with --batch."
            )
        return max(round(flops / mean), 1)

    def spent(self, record: Iterable[Mapping[str, Any]]) -> Iterator[Spent]:
        """What a run had used up after each of its steps, from the lines of its record."""
        pairs = self._pairs()
        tokens, flops = 0, 0.0
        for line in record:
            if line["kind"] == "step":
                new = line["tokens"] - tokens
                looked = round(new * pairs[line["place"], line["length"]])
                flops += self.step(Load(0, new, looked, line["count"]))
                tokens = line["tokens"]
                yield Spent(line["step"], tokens, line["seconds"], flops)

    def _pairs(self) -> dict[tuple[str, int], float]:
        """How many tokens a token looks at, by what a record says of a step: the task and the longest row."""
        stages = self.recipe.stages
        return {
            (stages[number].tasks[place].name, stages[number].length): load.pairs / load.tokens
            for (number, place), load in self.sample.items()
        }


def load_of(instance: Instance, objectives: Iterable[Objective], apart: bool) -> Load:
    """What there is to compute in some rows; `apart` keeps the documents of a row from seeing each other."""
    inputs = instance.inputs
    borders = inputs.rows
    if apart:
        changes = np.flatnonzero(np.diff(inputs.document)) + 1
        borders = np.unique(np.concatenate([inputs.rows, changes]))
    lengths = np.diff(borders).astype(np.int64)
    asked = {one.name: one.asked(instance) for one in learnable(objectives)}
    return Load(len(inputs.rows) - 1, len(inputs.ids), int((lengths**2).sum()), asked)


def _cost(objective: Objective, trunk: Trunk, vocabulary: int) -> Cost:
    """What an objective adds to the trunk in a forward pass; refuses one that does not say."""
    if isinstance(objective, Counted):
        return objective.cost(trunk, vocabulary)
    raise RecipeError(
        f"{type(objective).__name__} does not say what it costs, so its FLOPs cannot be counted. Give it a method "
        "`cost`, as unmask.objectives.part.Counted describes it."
    )
