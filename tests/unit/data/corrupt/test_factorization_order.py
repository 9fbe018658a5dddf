from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.rng import DrawPurpose, categorical, randint
from unmask.data.corrupt.factorization_order import PermutationOrder


@given(data=st.data(), share=st.sampled_from([0.01, 1 / 7, 1 / 6, 0.4, 1.0]), longest=st.integers(1, 5))
def test_laws_and_ranks_are_an_order(data, share, longest, examples, laws):
    example = data.draw(examples)
    instance = laws(PermutationOrder(share, longest), example)
    target = instance.targets[0]
    assert instance.inputs.ids.tolist() == example.ids.tolist()
    assert target.rank.dtype == np.int32
    assert np.flatnonzero(target.rank >= 0).tolist() == target.positions.tolist()
    assert not example.protected[target.positions].any()
    assert target.answers.tolist() == example.ids[target.positions].tolist()
    for first, last in pairwise(example.rows):
        ranks = target.rank[first:last]
        free = int((~example.protected[first:last]).sum())
        assert sorted(ranks[ranks >= 0].tolist()) == list(range(max(1, round(free * share))))


@given(free=st.integers(1, 130), share=st.sampled_from([1 / 6, 0.3]))
def test_blocks_are_those_of_a_loop(free, share, plain, vocab, keys):
    """Every span that the loop places is among the targets, and the rest only fills the budget."""
    key = keys(2)
    chosen = PermutationOrder(share)(plain(2, free), vocab, key).targets[0].rank.reshape(2, -1)[:, 1:-1] >= 0
    lengths = categorical(key.bits(DrawPurpose.LENGTH, free), 1 / np.arange(1, 6)) + 1
    for row in range(2):
        done, placed = 0, 0
        for number, length in enumerate(lengths[row].tolist()):
            block = int(np.ceil(length / share - 1e-9))
            if done + block > free:
                break
            start = done + randint(key.bits(DrawPurpose.PLACE, free)[row, number], block - length + 1)
            assert chosen[row, start : start + length].all()
            done, placed = done + block, placed + length
        assert placed <= chosen[row].sum() == max(1, round(free * share))


def test_span_lengths_follow_one_over_n(plain, vocab, keys):
    """The first run of targets of each row; runs of neighbouring blocks seldom touch."""
    rows = 4000
    rank = PermutationOrder()(plain(rows, 240), vocab, keys(rows)).targets[0].rank.reshape(rows, 242)
    assert ((rank >= 0).sum(axis=1) == 40).all()
    hit = rank >= 0
    start = hit.argmax(axis=1)
    length = (~hit & (np.arange(242) > start[:, None])).argmax(axis=1) - start
    law = 1 / np.arange(1, 6) / (1 / np.arange(1, 6)).sum()
    for n in range(1, 6):
        assert abs((length == n).mean() - law[n - 1]) < 0.03


def test_spans_of_one_lie_one_to_a_block_anywhere_in_it(plain, vocab, keys):
    rows = 2000
    rank = PermutationOrder(max_span=1)(plain(rows, 60), vocab, keys(rows)).targets[0].rank.reshape(rows, 62)[:, 1:-1]
    blocks = (rank >= 0).reshape(rows * 10, 6)
    assert (blocks.sum(axis=1) == 1).all()
    assert np.abs(blocks.mean(axis=0) - 1 / 6).max() < 0.015


def test_every_order_is_equally_likely(plain, vocab, keys):
    rows = 6000
    rank = PermutationOrder(target_fraction=0.5, max_span=1)(plain(rows, 6), vocab, keys(rows)).targets[0].rank
    orders, count = np.unique(rank[rank >= 0].reshape(rows, 3), axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(count / rows - 1 / 6).max() < 0.02


def test_refusals_are_sentences():
    with pytest.raises(RecipeError, match="share above 0 and up to 1, found 2"):
        PermutationOrder(target_fraction=2)
    with pytest.raises(RecipeError, match="at least 1 token, found 0"):
        PermutationOrder(max_span=0)
