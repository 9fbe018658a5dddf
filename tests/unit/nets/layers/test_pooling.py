"""Read-outs of rows: flat sums that say what a loop over rows would say."""

from __future__ import annotations

import pytest
import torch

from unmask.config.network import TransformerConfig
from unmask.config.pooling import Pooling
from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.heads import (
    PoolerClassifier,
    build_pooling,
    build_row_head,
    row_ids,
    segment_logsumexp,
    segment_max,
)

TRUNK = TransformerConfig(depth=1, width=8, heads=2, ffn_width=16)
LENGTHS = (3, 1, 5, 2)
FIRST_B = torch.tensor([0, 3, 4, 9])


def states(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(sum(LENGTHS), 8, generator=torch.Generator().manual_seed(1)).to(dtype)


def by_loop(read: Pooling, module: torch.nn.Module, x_TD: torch.Tensor) -> torch.Tensor:
    def one(row_LD: torch.Tensor) -> torch.Tensor:
        match read:
            case Pooling.FIRST:
                return row_LD[0]
            case Pooling.MEAN:
                return row_LD.mean(0)
            case Pooling.MAX:
                return row_LD.max(0).values
            case Pooling.ATTENTION:
                return torch.softmax(module.query(row_LD).squeeze(-1), 0) @ row_LD

    return torch.stack([one(row_LD) for row_LD in x_TD.split(LENGTHS)])


@pytest.mark.parametrize("read", Pooling)
def test_a_read_out_is_what_a_loop_over_rows_says_and_so_is_its_gradient(read):
    torch.manual_seed(0)
    module, flat, looped = build_pooling(read, TRUNK), states().requires_grad_(), states().requires_grad_()
    ours, theirs = module(HiddenStates((flat,)), FIRST_B), by_loop(read, module, looped)
    torch.testing.assert_close(ours, theirs)
    weights = torch.arange(32.0).view(4, 8)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(flat.grad, looped.grad)
    assert read.is_first_only is (flat.grad[1] == 0).all().item()


@pytest.mark.parametrize("read", Pooling)
def test_states_of_half_precision_are_summed_in_full(read):
    module, many = build_pooling(read, TRUNK).bfloat16(), torch.ones(5000, 8, dtype=torch.bfloat16)
    said = module(HiddenStates((many,)), torch.tensor([0]))
    assert said.dtype is torch.bfloat16
    torch.testing.assert_close(said, torch.ones(1, 8, dtype=torch.bfloat16))


def test_only_the_first_token_goes_through_the_pooler():
    first, mean = (build_row_head(read, TRUNK, 3) for read in (Pooling.FIRST, Pooling.MEAN))
    assert isinstance(first, PoolerClassifier)
    assert set(first.state_dict()) == {"pool.weight", "pool.bias", "classify.weight", "classify.bias"}
    assert set(mean.state_dict()) == {"classify.weight", "classify.bias"}


def test_every_token_knows_its_row():
    assert row_ids(FIRST_B, 11).tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3]


def test_groups_may_be_empty_large_or_masked_without_a_number_that_is_none():
    x_N = torch.tensor([1e4, 1e4 + 1, -torch.inf, -torch.inf, 2.0], requires_grad=True)
    group_N = torch.tensor([0, 0, 1, 1, 3])
    found_G = segment_logsumexp(x_N, group_N, 5)
    torch.testing.assert_close(found_G[[0, 3]], torch.stack([x_N[:2].logsumexp(0), x_N[4]]))
    assert (found_G[[1, 2, 4]] < -1e38).all()
    assert segment_max(x_N, group_N, 5).tolist() == [1e4 + 1, -torch.inf, -torch.inf, 2.0, -torch.inf]
    found_G.sum().backward()
    assert x_N.grad.isfinite().all()
    assert x_N.grad[[0, 1, 4]].sum() == pytest.approx(2)
