from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.records import TokenUnits, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corrupt.row_ops import (
    drop_tokens,
    random_partition,
    sample_cells,
    segment_starts,
    shuffle,
    unit_starts,
    valid_mask,
)


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6), data=st.data())
def test_pick_takes_exactly_as_many_as_asked_and_shuffle_orders_them_all(sizes, data, keys):
    counts = [data.draw(st.integers(0, size)) for size in sizes]
    real = valid_mask(np.array(sizes))
    words = keys(len(sizes)).bits(DrawPurpose.SELECT, real.shape[1])
    chosen = sample_cells(words, real, np.array(counts))
    assert chosen.sum(axis=1).tolist() == counts
    assert not (chosen & ~real).any()
    for size, order in zip(sizes, shuffle(words, real), strict=True):
        assert sorted(order[:size].tolist()) == list(range(size))


def test_pick_and_shuffle_favour_no_column(keys):
    rows = 6000
    words, real = keys(rows).bits(DrawPurpose.SELECT, 5), np.ones((rows, 5), dtype=bool)
    share = sample_cells(words, real, np.full(rows, 2)).mean(axis=0)
    assert np.abs(share - 0.4).max() < 0.025
    first = np.bincount(shuffle(words, real)[:, 0], minlength=5) / rows
    assert np.abs(first - 0.2).max() < 0.02


def test_equal_words_still_give_one_order():
    words, real = np.zeros((1, 4), dtype=np.uint64), np.ones((1, 4), dtype=bool)
    assert shuffle(words, real).tolist() == [[0, 1, 2, 3]]
    assert sample_cells(words, real, np.array([2])).tolist() == [[True, True, False, False]]


def test_every_segmentation_is_equally_likely(keys):
    rows = 6000
    cuts = random_partition(np.full(rows, 5), np.full(rows, 3), keys(rows), DrawPurpose.LENGTH).reshape(rows, 3)
    assert (cuts.sum(axis=1) == 5).all()
    found, count = np.unique(cuts, axis=0, return_counts=True)
    assert len(found) == 6
    assert np.abs(count / rows - 1 / 6).max() < 0.02


def test_segments_of_ragged_totals_with_an_empty_one(keys):
    lengths = random_partition(np.array([4, 0, 1]), np.array([2, 1, 1]), keys(3), DrawPurpose.LENGTH)
    assert lengths[:2].sum() == 4
    assert lengths.min() == 0
    assert lengths[2:].tolist() == [0, 1]


@given(data=st.data())
def test_units_begin_where_a_loop_says(data, examples):
    example = data.draw(examples)
    bits = example.units.bits
    for layer, flag, inside in (
        (UnitKind.WORD, UnitFlag.WORD, 0),
        (UnitKind.PHRASE, UnitFlag.PHRASE, UnitFlag.IN_PHRASE),
    ):
        expected = []
        for first, last in pairwise(example.rows):
            for i in range(first, last):
                border = i == first or example.protected[i] or example.protected[i - 1]
                border = border or example.segment[i] != example.segment[i - 1]
                outside = inside and not bits[i] & inside
                loose = outside and (bits[i] & UnitFlag.WORD or bits[i - 1] & inside)
                expected.append(bool(border or bits[i] & flag or loose))
        assert unit_starts(example, layer).tolist() == expected
    assert unit_starts(example, UnitKind.TOKEN).all()


@given(data=st.data())
def test_dropping_tokens_keeps_units_apart(data, examples):
    """Two neighbours that are kept lie in one word exactly if they did before."""
    example = data.draw(examples)
    kept = np.random.default_rng(data.draw(st.integers(0, 999))).random(len(example.ids)) < 0.5
    kept[example.rows[:-1]] = True
    result = drop_tokens(example, kept)
    assert result.ids.tolist() == example.ids[kept].tolist()
    assert result.rows.tolist() == [int(kept[:row].sum()) for row in example.rows]
    for layer in (UnitKind.WORD, UnitKind.SENTENCE):
        number = np.cumsum(unit_starts(example, layer))[kept]
        assert unit_starts(result, layer).tolist() == [True, *(a != b for a, b in pairwise(number.tolist()))]


def test_a_document_border_without_a_special_token_is_a_border(plain):
    example = plain(1, 6)
    document = np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=np.int32)
    example = type(example)(
        example.ids, example.segment, document, example.protected, TokenUnits(example.units.bits), example.rows
    )
    assert np.flatnonzero(segment_starts(example)).tolist() == [0, 1, 4, 7]


def test_draws_do_not_depend_on_the_width_of_the_batch():
    key = Key.of(3, "x").fold_in(np.arange(2))
    narrow = sample_cells(key.bits(DrawPurpose.SELECT, 4), np.ones((2, 4), dtype=bool), np.array([2, 1]))
    wide = sample_cells(
        key.bits(DrawPurpose.SELECT, 9), valid_mask(np.array([4, 9]))[:, :9] & (np.arange(9) < 4), np.array([2, 1])
    )
    assert wide[:, :4].tolist() == narrow.tolist()
