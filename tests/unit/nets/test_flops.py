"""The counted operations against those that torch counts while it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from unmask.nets.attention import Attention, Lowering
from unmask.nets.flops import STEP, Cost, replaced_head_cost, row_head_cost, spared_cost, token_head_cost, trunk_cost
from unmask.nets.heads import ReplacedHead, RowHead, TokenHead
from unmask.nets.layout import Borders
from unmask.nets.transformer import Tokens, Transformer
from unmask.nets.trunk import Activation, Sharing, Trunk

PLAIN = Trunk(depth=3, width=32, heads=4, inner=48)
TRUNKS = (
    PLAIN,
    replace(PLAIN, embedding=8),
    replace(PLAIN, sharing=Sharing.ALL, dropout=0.0, attention_dropout=0.0),
    replace(PLAIN, activation=Activation.GATED),
)
LENGTHS = (7, 1, 12)
TOKENS, PAIRS = sum(LENGTHS), sum(length**2 for length in LENGTHS)


def counted(work) -> int:
    """What torch counts in a forward and a backward pass."""
    with FlopCounterMode(display=False) as counter:
        work().sum().backward()
    return counter.get_total_flops()


def network(trunk: Trunk) -> tuple[Transformer, Tokens]:
    """A network whose attention is written out as matrix products, which is what torch counts everywhere."""
    model = Transformer(trunk, 50, 16)
    for module in model.modules():
        if isinstance(module, Attention):
            module.lowering = Lowering.EACH
    offsets = [0, *torch.tensor(LENGTHS).cumsum(0).tolist()]
    place = torch.cat([torch.arange(length) for length in LENGTHS])
    return model, Tokens(torch.arange(TOKENS), place, torch.zeros(TOKENS, dtype=torch.int64), Borders.of(offsets))


@pytest.mark.parametrize("trunk", TRUNKS, ids=["plain", "narrow", "shared", "gated"])
def test_a_trunk_costs_what_torch_counts(trunk):
    model, tokens = network(trunk)
    assert counted(lambda: model(tokens).last_TD) == STEP * trunk_cost(trunk).forward(TOKENS, PAIRS)


@pytest.mark.parametrize("trunk", TRUNKS, ids=["plain", "narrow", "shared", "gated"])
def test_a_last_block_that_is_spared_costs_what_torch_counts(trunk):
    model, tokens = network(trunk)
    places, looks = torch.tensor([0, 3, 8]), LENGTHS[0] + LENGTHS[0] + LENGTHS[2]
    cost = trunk_cost(trunk) + spared_cost(trunk)
    counts = TOKENS, PAIRS, len(places), looks
    assert counted(lambda: model(tokens, (places,)).at(places)) == STEP * cost.forward(*counts)


@pytest.mark.parametrize("trunk", TRUNKS[:2], ids=["plain", "narrow"])
def test_heads_cost_what_torch_counts(trunk):
    token = torch.nn.Embedding(50, trunk.token_width)
    x_PD = torch.randn(5, trunk.width, requires_grad=True)
    for head, cost in (
        (TokenHead(trunk, token), token_head_cost(trunk, 50).forward(0, 0, 5)),
        (RowHead(trunk, 3), row_head_cost(trunk, 3).forward(0, 0, 5)),
        (ReplacedHead(trunk), replaced_head_cost(trunk).forward(0, 0, 5)),
    ):
        assert counted(lambda head=head: head(x_PD)) == STEP * cost


def test_costs_add_up():
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert Cost(1, 2, 3).forward(5, 7, 11) == 5 + 14 + 33
