"""Training FLOPs: exact for given rows, estimated for a run record or a budget. Evaluations do not count.

A record has the number of tokens and predictions of each step, but not the lengths of its rows. For attention, which
grows with their squares, a sample of rows is used; it is a few per cent of the whole for rows of some hundred tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import DecoderTarget, InputsAndTargets, Ints
from unmask.nets.accounting.flops import STEP, ForwardCost
from unmask.objectives.protocol import Objective
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RecipeBatches, require_trainable

_SAMPLE = 512
"""Rows of a task that are looked at."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The size of a computation: rows, tokens, attended pairs, predictions."""

    rows: int
    tokens: int
    token_pairs: int
    """Pairs of tokens of which one looks at the other."""
    predictions: Mapping[str, int]
    """Predictions, by objective."""
    decoder_pairs: int = 0
    """Pairs of a token of a decoder and a token that it may attend to, of its own text or of the source."""


@dataclass(frozen=True, slots=True)
class ComputeSpent:
    """Tokens, time and FLOPs of a run up to a step."""

    step: int
    tokens: int
    seconds: float
    flops: float


@dataclass(frozen=True, slots=True)
class FlopsMeter:
    """The FLOPs of the steps of a recipe."""

    recipe: Recipe
    encoder: ForwardCost
    heads: Mapping[str, ForwardCost]
    sample: Mapping[tuple[int, int], Workload]
    """Some rows of every task, by stage and task."""

    @staticmethod
    def of(batches: RecipeBatches, vocabulary: int) -> FlopsMeter:
        """Sample some rows of every task."""
        recipe = batches.recipe
        heads = {one.name: one.cost(recipe.network, vocabulary) for one in recipe.objectives}
        sample = {
            (number, place): workload_of(
                feed.batch_at(np.arange(min(len(feed.plan), _SAMPLE))),
                recipe.stages[number].tasks[place].objectives,
                feed.task.attention.isolate_documents,
            )
            for (number, place), feed in batches.task_batches.items()
        }
        return FlopsMeter(recipe, recipe.network.forward_cost(), heads, sample)

    def forward(self, load: Workload) -> float:
        """One pass over some rows."""
        heads = (
            self.heads[name].forward(load.tokens, load.token_pairs, count, load.decoder_pairs)
            for name, count in load.predictions.items()
        )
        return self.encoder.forward(load.tokens, load.token_pairs) + sum(heads)

    def step(self, load: Workload) -> float:
        """A forward and a backward pass over some rows."""
        return STEP * self.forward(load)

    def mean_step(self) -> float:
        """What a step costs on average over the whole run."""
        total = 0.0
        for number, stage in enumerate(self.recipe.stages):
            for place, share in enumerate(stage.task_weights):
                load = self.sample[number, place]
                total += stage.fraction * share * stage.batch_size * self.step(load) / load.rows
        return total

    def steps(self, flops: float) -> int:
        """How many steps come nearest to a budget; refuses one that is not enough for a single step."""
        mean = self.mean_step()
        if not mean / 2 <= flops < float("inf"):
            raise RecipeError(
                f"A budget of {flops:.3g} FLOPs is not enough for one step of {self.recipe.name}, which costs about "
                f"{mean:.3g}. Give more, or make the step smaller with --batch-size."
            )
        return max(round(flops / mean), 1)

    def spent(self, record: Iterable[Mapping[str, Any]]) -> Iterator[ComputeSpent]:
        """The cumulative cost after each step, from the lines of a run record."""
        pairs, decoder_pairs = self._pairs(), self._decoder_pairs()
        tokens, flops = 0, 0.0
        for line in record:
            if line["kind"] == "step":
                new = line["tokens"] - tokens
                token_pairs = round(new * pairs[line["task"], line["length"]])
                decoded = round(new * decoder_pairs[line["task"], line["length"]])
                flops += self.step(Workload(0, new, token_pairs, line["count"], decoded))
                tokens = line["tokens"]
                yield ComputeSpent(line["step"], tokens, line["seconds"], flops)

    def _pairs(self) -> dict[tuple[str, int], float]:
        """The number of keys of a token, by the task and the longest row of a step."""
        stages = self.recipe.stages
        return {
            (stages[number].tasks[place].name, stages[number].max_length): load.token_pairs / load.tokens
            for (number, place), load in self.sample.items()
        }

    def _decoder_pairs(self) -> dict[tuple[str, int], float]:
        """The pairs of a decoder for each token of the inputs, by the task and the longest row of a step."""
        stages = self.recipe.stages
        return {
            (stages[number].tasks[place].name, stages[number].max_length): load.decoder_pairs / load.tokens
            for (number, place), load in self.sample.items()
        }


def workload_of(instance: InputsAndTargets, objectives: Iterable[Objective], isolate_documents: bool) -> Workload:
    """The workload of some rows; `isolate_documents` keeps attention inside each document."""
    inputs = instance.inputs
    borders = inputs.rows
    if isolate_documents:
        changes = np.flatnonzero(np.diff(inputs.document)) + 1
        borders = np.unique(np.concatenate([inputs.rows, changes]))
    lengths = np.diff(borders).astype(np.int64)
    predictions = {one.name: one.num_predictions(instance) for one in require_trainable(objectives)}
    decoded = sum(_decoder_pairs(one, inputs.rows) for one in instance.targets if isinstance(one, DecoderTarget))
    return Workload(len(inputs.rows) - 1, len(inputs.ids), int((lengths**2).sum()), predictions, decoded)


def _decoder_pairs(target: DecoderTarget, rows: Ints) -> int:
    """The pairs of self-attention and of cross-attention, as kernels without a causal shortcut compute them."""
    own, source = np.diff(target.rows), np.diff(rows)[: len(target.rows) - 1]
    return int((own * (own + source)).sum())
