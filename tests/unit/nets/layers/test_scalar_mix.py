"""The learned mixture of layers."""

from __future__ import annotations

import pytest
import torch

from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.scalar_mix import ScalarMix

LAYERS = tuple(torch.randn(5, 4, generator=torch.Generator().manual_seed(n)) for n in range(3))


def test_it_begins_as_the_plain_mean():
    mix = ScalarMix(3)
    mixed = mix(HiddenStates(LAYERS))
    assert len(mixed.layers) == 1
    assert torch.allclose(mixed.last_TD, torch.stack(LAYERS).mean(0))
    assert mix.layer_weights() == pytest.approx((1 / 3,) * 3)


def test_shares_and_scale_are_those_of_the_formula():
    mix = ScalarMix(3)
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.0, 1.0, -2.0]))
        mix.gamma.fill_(1.5)
    share = torch.tensor([0.0, 1.0, -2.0]).exp()
    share = share / share.sum()
    expected = 1.5 * sum(s * layer for s, layer in zip(share, LAYERS, strict=True))
    assert torch.allclose(mix(HiddenStates(LAYERS)).last_TD, expected)
    assert mix.layer_weights() == pytest.approx(share.tolist())
    assert sum(mix.layer_weights()) == pytest.approx(1)


def test_it_learns_which_layer_holds_the_answer():
    mix, optimizer = ScalarMix(3), None
    optimizer = torch.optim.Adam(mix.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (mix(HiddenStates(LAYERS)).last_TD - 2 * LAYERS[1]).pow(2).sum().backward()
        optimizer.step()
    assert mix.layer_weights()[1] > 0.9
    assert float(mix.gamma.detach()) == pytest.approx(2, rel=0.1)


def test_a_layer_too_few_is_a_mistake():
    with pytest.raises(AssertionError, match="a weight for every layer"):
        ScalarMix(4)(HiddenStates(LAYERS))
