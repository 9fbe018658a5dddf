"""Paces: what never moves asks for no gradient, what moves later waits, and numbers that mean nothing are refused."""

from __future__ import annotations

import pytest
from little_net import little

from unmask.core.errors import RecipeError
from unmask.train.optim.param_lr import FROZEN, ParamLR, delayed_parameters, freeze_parameters, full_lr


def pace(name: str) -> ParamLR:
    if name.startswith("head"):
        return ParamLR()
    return ParamLR(0.5, 0.25) if name.startswith("layers") else FROZEN


def test_what_never_moves_asks_for_no_gradient():
    net = little()
    freeze_parameters(net, pace)
    assert {name for name, parameter in net.named_parameters() if not parameter.requires_grad} == {"token.weight"}
    freeze_parameters(net, full_lr)
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_what_moves_later_is_found_by_its_time():
    net = little()
    (found,) = delayed_parameters(net, pace).items()
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    assert found[0] == 0.25
    assert all(names[id(parameter)].startswith("layers") for parameter in found[1])
    assert len(found[1]) == sum(name.startswith("layers") for name in names.values())
    assert delayed_parameters(net, full_lr) == {}


def test_whether_a_pace_moves():
    assert ParamLR().is_trained
    assert ParamLR(0.1, 1.0).is_trained
    assert not FROZEN.is_trained


@pytest.mark.parametrize("wrong", [{"scale": -1}, {"from_fraction": -0.1}, {"from_fraction": 1.1}])
def test_numbers_that_mean_nothing_are_refused(wrong):
    with pytest.raises(RecipeError, match="A pace needs"):
        ParamLR(**wrong)
