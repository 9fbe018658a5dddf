"""Every policy on a network whose layers share their weights: it learns, or it says why it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from little_policy import DEEP, EVERY, equipped, named, tuned, tuning

from unmask.config.network import Activation, Sharing
from unmask.core.errors import RecipeError
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.lora import Lora
from unmask.finetuning.methods.protocol import FullFineTuning, param_lrs
from unmask.finetuning.methods.unfreezing import GradualUnfreezing, TopLayers
from unmask.finetuning.parameter_roles import ParameterRole, locate_parameters

LITE = replace(
    DEEP, embedding_width=8, sharing=Sharing.ALL, activation=Activation.GELU_TANH, dropout=0, attention_dropout=0
)
"""Three layers that are one."""
TWO_SETS = replace(LITE, depth=4, share_groups=2)


@pytest.mark.parametrize("policy", [one for one in EVERY if one != TopLayers(num_blocks=1)], ids=named)
def test_every_policy_moves_what_it_says_and_nothing_else(tmp_path, policy):
    made = tuning(tmp_path, policy, trunk=LITE)
    first = {name: one.clone() for name, one in equipped(policy, LITE).named_weights().items()}
    learner = tuned(made, tmp_path / "run").learner
    paces = param_lrs(policy, learner)
    assert first.keys() == learner.named_weights().keys()
    for name, tensor in learner.named_weights().items():
        assert torch.equal(tensor, first[name]) is not paces(name).is_trained, name


def test_layers_that_share_have_one_rate_and_one_moment():
    for policy, scale, since in ((FullFineTuning(layer_lr_decay=0.5), 0.5, 0.0), (GradualUnfreezing(), 1 / 2.6, 0.125)):
        learner = equipped(policy, LITE)
        paces = param_lrs(policy, learner)
        blocks = {
            paces(name) for name, place in locate_parameters(learner).items() if place.role is ParameterRole.BLOCK
        }
        assert [(pace.scale, pace.from_fraction) for pace in blocks] == [(scale, since)]


@pytest.mark.parametrize("policy", [Adapter(width=4), Lora(rank=2)], ids=named)
def test_what_is_added_is_added_once_for_all_depths(policy):
    added = [
        sum(
            learner.named_weights()[name].numel()
            for name, place in locate_parameters(learner).items()
            if place.role is ParameterRole.ADDED
        )
        for learner in (equipped(policy, replace(LITE, depth=depth)) for depth in (1, 3))
    ]
    assert added[0] == added[1] > 0


@pytest.mark.parametrize(
    ("trunk", "blocks", "wish"),
    [
        (LITE, 1, "Use --num-top-blocks 3"),
        (TWO_SETS, 1, "--num-top-blocks 1 of 4: these blocks share weights with lower ones.*Use --num-top-blocks 2"),
        (TWO_SETS, 3, "Use --num-top-blocks 4"),
        (replace(LITE, sharing=Sharing.ATTENTION), 2, "Use --num-top-blocks 3, or the method 'full'"),
        (replace(LITE, depth=4, layers_per_group=2), 2, "Use --num-top-blocks 4"),
    ],
)
def test_blocks_that_cannot_move_alone_are_refused(tmp_path, trunk, blocks, wish):
    with pytest.raises(RecipeError, match=wish):
        tuning(tmp_path, TopLayers(blocks), trunk=trunk)


def test_a_set_of_its_own_can_move_alone(tmp_path):
    learner = tuned(tuning(tmp_path, TopLayers(2), trunk=TWO_SETS), tmp_path / "run").learner
    moving = {
        place.level
        for name, place in locate_parameters(learner).items()
        if param_lrs(TopLayers(2), learner)(name).is_trained
    }
    assert moving == {4, 5}
