from itertools import pairwise
from math import ceil, exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.row_ops import unit_starts
from unmask.data.corrupt.text_infilling import TextInfilling


@given(data=st.data())
def test_laws(data, examples, laws):
    rate, mean = data.draw(st.sampled_from([(0.3, 3.0), (1.0, 3.0), (0.5, 0.5), (0.1, 10.0)]))
    layer = data.draw(st.sampled_from([UnitKind.TOKEN, UnitKind.WORD, UnitKind.PHRASE, UnitKind.SENTENCE]))
    laws(TextInfilling(rate, mean, layer), data.draw(examples))


@given(data=st.data(), seed=st.integers(0, 10**6))
def test_whole_words_go_and_the_budget_is_met(data, seed, examples, vocab):
    example = data.draw(examples)
    # Every token a different id, so that what is left says which tokens are gone.
    ids = np.where(example.protected, example.ids, 10 + np.arange(len(example.ids), dtype=np.int32))
    example = type(example)(ids, example.segment, example.document, example.protected, example.units, example.rows)
    spoilt = TextInfilling(0.4, 2.0).apply(example, vocab, Key.of(seed).fold_in(np.arange(len(example))))
    assert (spoilt.protected == np.isin(spoilt.ids, (vocab.cls, vocab.sep))).all()
    word = np.cumsum(unit_starts(example, UnitKind.WORD))
    for (first, last), (begin, end) in zip(pairwise(example.rows), pairwise(spoilt.rows), strict=True):
        left = [i for i in spoilt.ids[begin:end].tolist() if i != vocab.mask]
        assert left == [i for i in ids[first:last].tolist() if i in set(left)]
        gone = {int(word[i]) for i in range(first, last) if ids[i] not in left}
        words = {int(word[i]) for i in range(first, last) if not example.protected[i]}
        assert len(gone) == ceil(len(words) * 0.4 - 1e-9)
        assert not any(int(ids[i]) in left for i in range(first, last) if int(word[i]) in gone)


def test_lengths_follow_poisson_including_zero(plain, vocab, keys):
    """A mask between two tokens stands for what is missing between them; ids count up, so the gap says how much."""
    spoilt = TextInfilling(rate=0.3, mean_span_length=3.0).apply(plain(200, 1500), vocab, keys(200)).ids
    middle = np.flatnonzero((spoilt[1:-1] == vocab.mask) & (spoilt[:-2] >= 10) & (spoilt[2:] >= 10)) + 1
    lengths = spoilt[middle + 1] - spoilt[middle - 1] - 1
    assert len(lengths) > 15_000
    assert abs(lengths.mean() - 3) < 0.05
    for length in range(8):
        law = exp(-3) * 3**length / factorial(length)
        assert abs((lengths == length).mean() - law) < 0.01


def test_the_masks_are_the_spans(plain, vocab, keys):
    spoilt = TextInfilling(rate=0.3, mean_span_length=3.0).apply(plain(200, 1500), vocab, keys(200))
    masks = (spoilt.ids == vocab.mask).sum() / 200
    assert abs(450 / masks - 3) < 0.05
    assert (spoilt.ids >= 10).sum() == 200 * (1500 - 450)


def test_a_span_across_a_special_token_is_cut_there(pair, vocab, keys):
    spoilt = TextInfilling(rate=1.0, mean_span_length=50.0).apply(pair(1, 4, 6), vocab, keys(1))
    assert spoilt.ids.tolist() == [vocab.cls, vocab.mask, vocab.sep, vocab.mask, vocab.sep]


def test_all_of_a_text_can_go_and_masks_are_words(plain, vocab, keys):
    spoilt = TextInfilling(rate=1.0).apply(plain(3, 7), vocab, keys(3))
    assert set(spoilt.ids.tolist()) == {vocab.cls, vocab.mask, vocab.sep}
    assert unit_starts(spoilt, UnitKind.WORD).all()


def test_an_inserted_mask_can_be_the_last_of_its_row(plain, vocab, keys):
    spoilt = TextInfilling(rate=0.1, mean_span_length=0.1).apply(plain(50, 3), vocab, keys(50))
    last = spoilt.ids[spoilt.rows[1:] - 2]
    assert (last == vocab.mask).any()
    assert (spoilt.ids[spoilt.rows[1:] - 1] == vocab.sep).all()


def test_refusals_and_needs():
    with pytest.raises(RecipeError, match="rate above 0 and up to 1, found 0"):
        TextInfilling(rate=0.0)
    with pytest.raises(RecipeError, match=r"mean span length from 0\.1 to 100, found 0"):
        TextInfilling(mean_span_length=0.0)
    assert TextInfilling().required_units == {UnitKind.WORD}
    assert TextInfilling(layer=UnitKind.TOKEN).required_units == frozenset()
