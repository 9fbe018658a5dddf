from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.data.corrupt.token_deletion import TokenDeletion


@given(data=st.data(), rate=st.sampled_from([0.01, 0.15, 0.5, 0.99]))
def test_laws_and_the_number_deleted(data, rate, examples, laws):
    example = data.draw(examples)
    inputs = laws(TokenDeletion(rate), example).inputs
    for row, (first, last) in enumerate(pairwise(example.rows)):
        free = int((~example.protected[first:last]).sum())
        gone = (last - first) - (inputs.rows[row + 1] - inputs.rows[row])
        assert gone == min(max(round(free * rate), 1), free - 1)
        left = iter(example.ids[first:last].tolist())
        assert all(i in left for i in inputs.ids[inputs.rows[row] : inputs.rows[row + 1]].tolist())


def test_every_token_is_deleted_equally_often(plain, vocab, keys):
    left = TokenDeletion(0.2).apply(plain(3000, 10), vocab, keys(3000))
    share = np.bincount(left.ids[~left.protected] - 10, minlength=10) / 3000
    assert np.abs(share - 0.8).max() < 0.03


def test_the_target_gets_a_separator_only_where_the_row_has_none(plain, vocab, keys):
    example = plain(1, 4)
    whole = TokenDeletion()(example, vocab, keys(1)).targets[0]
    assert whole.ids.tolist() == example.ids.tolist()
    open_row = type(example)(
        example.ids[:-1],
        example.segment[:-1],
        example.document[:-1],
        example.protected[:-1],
        example.units,
        np.array([0, 5]),
    )
    added = TokenDeletion()(open_row, vocab, keys(1)).targets[0]
    assert added.ids.tolist() == example.ids.tolist()
    assert added.position.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_rate_of_one_is_refused():
    with pytest.raises(RecipeError, match=r"Delete needs a rate between 0 and 1, found 1\.0"):
        TokenDeletion(1.0)
