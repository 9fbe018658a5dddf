"""Dropout: the share that falls, the mean that stays, and draws that follow torch's seed."""

import pytest
import torch

from unmask.config.network import TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dispatch import apply_dropout
from unmask.nets.layers.attention import AttentionBackend, SelfAttention

MANY = 1_000_003  # no multiple of four


def dropped(rate, seed=0):
    torch.manual_seed(seed)
    return apply_dropout(torch.ones(MANY), rate)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_that_falls_and_the_mean_that_stays(rate):
    x = dropped(rate)
    deviation = (rate * (1 - rate) / MANY) ** 0.5
    assert abs((x == 0).float().mean().item() - rate) < 5 * deviation + 1e-5
    assert torch.allclose(x[x != 0], torch.tensor(1 / (1 - rate)), rtol=1e-4)


def test_neighbours_fall_independently():
    fallen = dropped(0.1) == 0
    for distance in (1, 2, 3, 4, 8):
        both = (fallen[distance:] & fallen[:-distance]).float().mean().item()
        assert abs(both - 0.01) < 5 * (0.01 * 0.99 / MANY) ** 0.5 * 1.2


def test_the_seed_decides():
    assert torch.equal(dropped(0.1, seed=3), dropped(0.1, seed=3))
    assert not torch.equal(dropped(0.1, seed=3), dropped(0.1, seed=4))


def test_nothing_falls_at_rate_zero_or_out_of_training():
    x = torch.randn(5)
    assert apply_dropout(x, 0.0) is x
    assert apply_dropout(x, 0.5, training=False) is x


def test_the_gradient_is_that_of_what_was_kept():
    x = torch.ones(1000, requires_grad=True)
    y = apply_dropout(x, 0.3)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("lowering", [AttentionBackend.LOOP, AttentionBackend.REFERENCE, AttentionBackend.SDPA])
def test_attention_dropout_has_the_same_mean_and_spread_in_every_lowering(lowering):
    trunk = TransformerConfig(depth=1, width=8, heads=2, ffn_width=8, attention_dropout=0.4)
    torch.manual_seed(0)
    made = SelfAttention(trunk).train()
    made.backend = lowering
    with torch.no_grad():
        made.out.weight.copy_(torch.eye(8))
        x = torch.randn(6, 8).repeat(2000, 1)
        y = made(x, PackedSequences.of([6 * i for i in range(2001)])).view(2000, 6, 8)
        exact = made.eval()(x[:6], PackedSequences.of([0, 6]))
    assert (y.mean(0) - exact).abs().max() < 0.05
    # Each value is kept or not by itself: the spread of a sum of six terms of about a sixth each.
    value = made.qkv(x[:6]).view(6, 3, 2, 4)[:, 2]
    weights = made.qkv(x[:6]).view(6, 3, 2, 4).permute(1, 2, 0, 3)
    q, k = weights[0], weights[1]
    attended = (q @ k.transpose(1, 2) / 2).softmax(-1)
    expected = torch.einsum("hlm,mhk->lhk", attended**2, value**2) * 0.4 / 0.6
    assert torch.allclose(y.var(0).view(6, 2, 4), expected, rtol=0.25, atol=1e-3)


def test_a_cpu_with_attention_dropout_takes_the_sequences_one_by_one(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a padded grid was made")

    monkeypatch.setattr("unmask.nets.attention.backends.pad", refuse)
    made = SelfAttention(TransformerConfig(depth=1, width=8, heads=2, ffn_width=8)).train()
    assert made(torch.randn(9, 8), PackedSequences.of([0, 3, 4, 9])).shape == (9, 8)
