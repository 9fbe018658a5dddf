from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.records import UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.row_ops import segment_starts, unit_starts
from unmask.data.corrupt.sentence_permutation import PermuteSentences


@given(data=st.data())
def test_laws(data, examples, laws):
    example = data.draw(examples)
    inputs = laws(PermuteSentences(), example).inputs
    assert (inputs.ids[example.protected] == example.ids[example.protected]).all()
    assert inputs.segment.tolist() == example.segment.tolist()


@given(data=st.data(), seed=st.integers(0, 10**6))
def test_each_stretch_holds_the_same_sentences(data, seed, examples, vocab):
    example = data.draw(examples)
    moved = PermuteSentences().apply(example, vocab, Key.of(seed).fold_in(np.arange(len(example))))
    edges = [*np.flatnonzero(segment_starts(example)), len(example.ids)]
    for first, last in pairwise(edges):
        assert _sentences(moved, first, last) == _sentences(example, first, last)


def _sentences(example, first, last):
    starts = np.flatnonzero(unit_starts(example, UnitKind.SENTENCE))
    cuts = [*starts[(starts >= first) & (starts < last)], last]
    return sorted(example.ids[a:b].tolist() for a, b in pairwise(cuts))


def test_every_order_is_equally_likely(plain, vocab, keys):
    rows = 6000
    example = plain(rows, 6, sentences=(0, 1, 4))
    inputs = PermuteSentences()(example, vocab, keys(rows)).inputs
    orders, count = np.unique(inputs.ids.reshape(rows, 8), axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(count / rows - 1 / 6).max() < 0.02
    assert PermuteSentences().required_units == {UnitKind.SENTENCE}
