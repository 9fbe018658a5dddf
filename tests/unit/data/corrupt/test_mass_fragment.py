from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.data.corrupt.mass_fragment import MassFragment


@given(data=st.data(), share=st.sampled_from([0.01, 0.5, 1.0]))
def test_laws_and_one_fragment_of_the_asked_size(data, share, examples, laws):
    example = data.draw(examples)
    instance = laws(MassFragment(share), example)
    target = instance.targets[0]
    assert (instance.inputs.ids[example.protected] == example.ids[example.protected]).all()
    for row, (first, last) in enumerate(pairwise(example.rows)):
        free = np.flatnonzero(~example.protected[first:last]).tolist()
        where = target.position[target.rows[row] : target.rows[row + 1]].tolist()
        assert len(where) == max(1, round(len(free) * share))
        begin = free.index(where[0])
        assert where == free[begin : begin + len(where)]
        said = target.ids[target.rows[row] : target.rows[row + 1]]
        assert said.tolist() == example.ids[first:last][where].tolist()
        rest = np.setdiff1d(np.arange(last - first), where) + first
        assert (instance.inputs.ids[rest] == example.ids[rest]).all()


def test_places_are_20_20_60(plain, vocab, keys):
    rows = 8000
    target = MassFragment()(plain(rows, 40), vocab, keys(rows)).targets[0]
    start = target.position[target.rows[:-1]] - 1
    share = np.bincount(start, minlength=21) / rows
    assert len(share) == 21
    anywhere = 0.6 / 21
    assert abs(share[0] - 0.2 - anywhere) < 0.015
    assert abs(share[20] - 0.2 - anywhere) < 0.015
    assert np.abs(share[1:20] - anywhere).max() < 0.01


def test_the_encoder_sees_80_10_10(plain, vocab, keys):
    rows = 2000
    example = plain(rows, 100)
    instance = MassFragment()(example, vocab, keys(rows))
    target = instance.targets[0]
    seen = instance.inputs.ids[target.position + np.repeat(example.rows[:-1], 50)]
    assert abs((seen == vocab.mask).mean() - 0.8) < 0.005
    assert abs((seen == target.ids).mean() - 0.1) < 0.005
    assert np.isin(seen[seen != vocab.mask], vocab.ordinary).all()


def test_refusals_are_sentences():
    with pytest.raises(RecipeError, match="share above 0 and up to 1, found 0"):
        MassFragment(fraction=0.0)
    with pytest.raises(RecipeError, match="mask, random and keep that sum to 1"):
        MassFragment(mask=0.9)
    with pytest.raises(RecipeError, match="place that sum to 1"):
        MassFragment(place_probabilities=(0.5, 0.5, 0.5))
