"""Law 7, Run-blindness, about the last block: read at some places, every member learns what it learns from all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from law_nets import assert_same_gradients, dry, run_of, trained_members, training, uneven, worker_for
from torch import Tensor

from unmask.config.network import Activation, Norm
from unmask.core.records import DecoderTarget, NextToken
from unmask.nets.layers.block import FeedForward
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit
from unmask.train.step import DeviceBatch

MEMBERS = [
    dry(recipe)
    for recipe in trained_members()
    if not any(objective.target_type in (NextToken, DecoderTarget) for objective in recipe.objectives)
]
"""A language model predicts at every position and a decoder reads them all: their last block is computed everywhere."""
every_member = pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
SAME = 2e-5
"""Of the largest number in a gradient: sums are grouped in another way."""


def gradients(recipe: Recipe, sparing: bool, evened: bool) -> tuple[Tensor, Mapping[str, Tensor], int]:
    """The sums of a step, its gradients, and how many rows went through feed-forward layers."""
    made = training(recipe, 1)
    worker = worker_for(made, run_of(sparse_last_block=sparing))
    rows: list[int] = []
    for part in made.model.modules():
        if isinstance(part, FeedForward):
            part.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    loaded = DeviceBatch.of(made.source.batch(uneven(made.source), RankSplit()), torch.device("cpu"), evened)
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    return sums, {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}, sum(rows)


def check(recipe: Recipe, evened: bool) -> None:
    (sums, mine, fewer), (expected, theirs, rows) = (gradients(recipe, sparing, evened) for sparing in (True, False))
    assert fewer < rows
    torch.testing.assert_close(sums, expected, rtol=SAME, atol=SAME)
    assert_same_gradients(mine, theirs, SAME)


@pytest.mark.parametrize("evened", [False, True], ids=["as it comes", "evened"])
@every_member
def test_loss_and_gradients_are_those_of_all_places(recipe: Recipe, evened: bool) -> None:
    check(recipe, evened)


@pytest.mark.parametrize("change", [{"norm": Norm.PRE}, {"activation": Activation.GEGLU}], ids=["pre-norm", "gated"])
def test_so_it_is_for_trunks_of_other_kinds(change: Mapping[str, object]) -> None:
    check(replace(MEMBERS[0], network=replace(MEMBERS[0].network, **change)), False)
