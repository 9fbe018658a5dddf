"""Every policy on a network whose layers share their weights: it learns, or it says why it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from little_policy import DEEP, EVERY, equipped, named, tuned, tuning

from unmask.errors import RecipeError
from unmask.nets.trunk import Activation, Sharing
from unmask.tune.places import Part, places
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.gradual import Gradual
from unmask.tune.policies.lora import Lora
from unmask.tune.policies.top import Top
from unmask.tune.policy import Full, paces_of

LITE = replace(DEEP, embedding=8, sharing=Sharing.ALL, activation=Activation.GELU_TANH, dropout=0, attention_dropout=0)
"""Three layers that are one."""
TWO_SETS = replace(LITE, depth=4, groups=2)


@pytest.mark.parametrize("policy", [one for one in EVERY if one != Top(blocks=1)], ids=named)
def test_every_policy_moves_what_it_says_and_nothing_else(tmp_path, policy):
    made = tuning(tmp_path, policy, trunk=LITE)
    first = {name: one.clone() for name, one in equipped(policy, LITE).weights().items()}
    learner = tuned(made, tmp_path / "run").learner
    paces = paces_of(policy, learner)
    assert first.keys() == learner.weights().keys()
    for name, tensor in learner.weights().items():
        assert torch.equal(tensor, first[name]) is not paces(name).moves, name


def test_layers_that_share_have_one_rate_and_one_moment():
    for policy, scale, since in ((Full(decay=0.5), 0.5, 0.0), (Gradual(), 1 / 2.6, 0.125)):
        learner = equipped(policy, LITE)
        paces = paces_of(policy, learner)
        blocks = {paces(name) for name, place in places(learner).items() if place.part is Part.BLOCK}
        assert [(pace.scale, pace.since) for pace in blocks] == [(scale, since)]


@pytest.mark.parametrize("policy", [Adapter(width=4), Lora(rank=2)], ids=named)
def test_what_is_added_is_added_once_for_all_depths(policy):
    added = [
        sum(learner.weights()[name].numel() for name, place in places(learner).items() if place.part is Part.ADDED)
        for learner in (equipped(policy, replace(LITE, depth=depth)) for depth in (1, 3))
    ]
    assert added[0] == added[1] > 0


@pytest.mark.parametrize(
    ("trunk", "blocks", "wish"),
    [
        (LITE, 1, "Take --blocks 3"),
        (TWO_SETS, 1, "1 of 4 blocks shall move, but they share weights with lower ones.*Take --blocks 2"),
        (TWO_SETS, 3, "Take --blocks 4"),
        (replace(LITE, sharing=Sharing.ATTENTION), 2, "Take --blocks 3, or the policy 'full'"),
        (replace(LITE, depth=4, cycle=2), 2, "Take --blocks 4"),
    ],
)
def test_blocks_that_cannot_move_alone_are_refused(tmp_path, trunk, blocks, wish):
    with pytest.raises(RecipeError, match=wish):
        tuning(tmp_path, Top(blocks), trunk=trunk)


def test_a_set_of_its_own_can_move_alone(tmp_path):
    learner = tuned(tuning(tmp_path, Top(2), trunk=TWO_SETS), tmp_path / "run").learner
    moving = {place.level for name, place in places(learner).items() if paces_of(Top(2), learner)(name).moves}
    assert moving == {4, 5}
