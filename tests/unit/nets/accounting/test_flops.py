"""The counted operations against those that torch counts while it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from unmask.config.network import Activation, Sharing, TransformerConfig
from unmask.nets.accounting.flops import (
    STEP,
    ForwardCost,
    discriminator_head_cost,
    encoder_cost,
    lm_head_cost,
    row_head_cost,
    sparse_last_block_saving,
)
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder
from unmask.nets.layers.attention import AttentionBackend, SelfAttention
from unmask.nets.layers.heads import DiscriminatorHead, LMHead, PoolerClassifier

PLAIN = TransformerConfig(depth=3, width=32, heads=4, ffn_width=48)
TRUNKS = (
    PLAIN,
    replace(PLAIN, embedding_width=8),
    replace(PLAIN, sharing=Sharing.ALL, dropout=0.0, attention_dropout=0.0),
    replace(PLAIN, activation=Activation.GEGLU),
)
LENGTHS = (7, 1, 12)
TOKENS, PAIRS = sum(LENGTHS), sum(length**2 for length in LENGTHS)


def counted(work) -> int:
    """What torch counts in a forward and a backward pass."""
    with FlopCounterMode(display=False) as counter:
        work().sum().backward()
    return counter.get_total_flops()


def network(trunk: TransformerConfig) -> tuple[TransformerEncoder, TokenInputs]:
    """A network whose attention is written out as matrix products, which is what torch counts everywhere."""
    model = TransformerEncoder(trunk, 50, 16)
    for module in model.modules():
        if isinstance(module, SelfAttention):
            module.backend = AttentionBackend.LOOP
    offsets = [0, *torch.tensor(LENGTHS).cumsum(0).tolist()]
    place = torch.cat([torch.arange(length) for length in LENGTHS])
    return model, TokenInputs(
        torch.arange(TOKENS), place, torch.zeros(TOKENS, dtype=torch.int64), PackedSequences.of(offsets)
    )


@pytest.mark.parametrize("trunk", TRUNKS, ids=["plain", "narrow", "shared", "gated"])
def test_a_trunk_costs_what_torch_counts(trunk):
    model, tokens = network(trunk)
    assert counted(lambda: model(tokens).last_TD) == STEP * encoder_cost(trunk).forward(TOKENS, PAIRS)


@pytest.mark.parametrize("trunk", TRUNKS, ids=["plain", "narrow", "shared", "gated"])
def test_a_last_block_that_is_spared_costs_what_torch_counts(trunk):
    model, tokens = network(trunk)
    places, looks = torch.tensor([0, 3, 8]), LENGTHS[0] + LENGTHS[0] + LENGTHS[2]
    cost = encoder_cost(trunk) + sparse_last_block_saving(trunk)
    counts = TOKENS, PAIRS, len(places), looks
    assert counted(lambda: model(tokens, (places,)).select(places)) == STEP * cost.forward(*counts)


@pytest.mark.parametrize("trunk", TRUNKS[:2], ids=["plain", "narrow"])
def test_heads_cost_what_torch_counts(trunk):
    token = torch.nn.Embedding(50, trunk.token_width)
    x_PD = torch.randn(5, trunk.width, requires_grad=True)
    for head, cost in (
        (LMHead(trunk, token), lm_head_cost(trunk, 50).forward(0, 0, 5)),
        (PoolerClassifier(trunk, 3), row_head_cost(trunk, 3).forward(0, 0, 5)),
        (DiscriminatorHead(trunk), discriminator_head_cost(trunk).forward(0, 0, 5)),
    ):
        assert counted(lambda head=head: head(x_PD)) == STEP * cost


def test_costs_add_up():
    assert ForwardCost(1, 2, 3) + ForwardCost(10, 20, 30) == ForwardCost(11, 22, 33)
    assert ForwardCost(1, 2, 3).forward(5, 7, 11) == 5 + 14 + 33
