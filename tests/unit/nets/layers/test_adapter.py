"""Bottleneck adapters: where they stand, how many numbers they have, and that they change almost nothing at first."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from unmask.config.network import Norm, Sharing, TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights, num_parameters
from unmask.nets.layers.adapter import INIT_STD, Bottleneck, add_adapters
from unmask.nets.layers.block import ResidualBranch

TRUNK = TransformerConfig(depth=3, width=16, heads=2, ffn_width=32)


def made(trunk: TransformerConfig = TRUNK) -> TransformerEncoder:
    net = TransformerEncoder(trunk, 50, 12)
    init_weights(net, 0.1, torch.Generator().manual_seed(1))
    return net.eval()


def said(net: TransformerEncoder) -> torch.Tensor:
    ids_T = torch.arange(12)
    with torch.no_grad():
        return net(TokenInputs(ids_T, ids_T % 6, torch.zeros_like(ids_T), PackedSequences.of([0, 6, 12]))).last_TD


@pytest.mark.parametrize("narrow", [1, 4, 64])
def test_parameters_of_a_layer(narrow):
    net = made()
    before = num_parameters(net)
    add_adapters(net, narrow, 0)
    assert num_parameters(net) - before == TRUNK.depth * 2 * (2 * narrow * 16 + 16 + narrow)


@pytest.mark.parametrize("norm", Norm)
def test_at_first_the_network_says_almost_what_it_said_and_both_layers_learn(norm):
    net = made(replace(TRUNK, norm=norm))
    before = said(net)
    add_adapters(net, 8, 0)
    difference = (said(net) - before).abs().max()
    assert 0 < difference < 1e-3
    ids_T = torch.arange(12)
    net(TokenInputs(ids_T, ids_T % 6, torch.zeros_like(ids_T), PackedSequences.of([0, 6, 12]))).last_TD.pow(
        3
    ).sum().backward()
    for adapter in (part for part in net.modules() if isinstance(part, Bottleneck)):
        assert adapter.down.weight.grad is not None
        assert adapter.down.weight.grad.any()
        assert adapter.up.weight.grad.any()


def test_the_formula():
    adapter = Bottleneck(16, 4)
    adapter.init_weights(torch.Generator().manual_seed(1))
    x_TD = torch.randn(5, 16)
    down = torch.nn.functional.gelu(x_TD @ adapter.down.weight.T + adapter.down.bias)
    assert torch.allclose(adapter(x_TD), x_TD + down @ adapter.up.weight.T + adapter.up.bias)


def test_first_weights_are_small_cut_and_the_same_for_the_same_seed():
    nets = [made(), made(), made()]
    for net, seed in zip(nets, (0, 0, 1), strict=True):
        add_adapters(net, 64, seed)
    weights = [{n: p for n, p in net.named_parameters() if ".adapt." in n} for net in nets]
    for name, drawn in weights[0].items():
        assert torch.equal(drawn, weights[1][name])
        if drawn.dim() == 1:
            assert not drawn.any()
        else:
            assert not torch.equal(drawn, weights[2][name])
            assert drawn.abs().max() <= 2 * INIT_STD
            assert float(drawn.detach().std()) == pytest.approx(0.88 * INIT_STD, rel=0.1)  # of a law cut at two


def test_it_stands_between_work_and_norm():
    branch = ResidualBranch(TRUNK, nn.Linear(16, 16)).eval()
    branch.adapter = nn.Threshold(1e9, 0.0)  # lets nothing through
    x_TD = torch.randn(5, 16)
    assert torch.equal(branch(x_TD), branch.norm(x_TD))


@pytest.mark.parametrize(("sharing", "adapters"), [(Sharing.NONE, 6), (Sharing.ATTENTION, 4), (Sharing.ALL, 2)])
def test_branches_that_are_shared_share_their_adapter(sharing, adapters):
    net = made(replace(TRUNK, sharing=sharing))
    add_adapters(net, 4, 0)
    assert len({id(part) for part in net.modules() if isinstance(part, Bottleneck)}) == adapters
