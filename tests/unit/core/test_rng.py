"""The bit stream is written down, is uniform, and depends on every part of an address."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.rng import DrawPurpose, Key, categorical, permuted_index, randint, uniform

MASK = 2**64 - 1


def mix(z: int) -> int:
    """SplitMix64's finaliser with whole numbers, as its authors print it."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def word(seed: int, parts: list[int | str], lane: int, counter: int) -> int:
    """One word of the stream by the definition of the module docstring: the oracle."""
    golden, state = 0x9E3779B97F4A7C15, seed & MASK
    for part in (*parts, lane):
        number = (
            part
            if isinstance(part, int)
            else int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest(), "little")
        )
        state = mix(mix((state + golden) & MASK) ^ (number & MASK))
    return mix((state + (counter + 1) * golden) & MASK)


def chi_square(counts: np.ndarray) -> float:
    """How many standard deviations a chi-square statistic of even counts lies above its mean."""
    expected, freedom = counts.sum() / len(counts), len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


def test_the_bit_stream_never_changes() -> None:
    assert Key.of(0).bits(DrawPurpose.PLAN, 3).tolist() == [0x568A9B0B1A2C05EC, 0x44E5B8B147EF718B, 0x458563AB55521133]
    assert Key.of(7, "mlm", 3).bits(DrawPurpose.SELECT, 2).tolist() == [0x33F938C50ACA3B2E, 0x2238ED069CCAEAFF]
    assert Key.of(-1, "遮").bits(DrawPurpose.MIX, 2).tolist() == [0xE8259A1AC68F93A5, 0x3385296BBDA37FF0]
    rows = Key.of(7, "mlm").fold_in(np.arange(2)).bits(DrawPurpose.TOKEN, 2)
    assert rows.tolist() == [[0x937D494379BB5DAE, 0x7B4172C01A4FE8A5], [0x36AEFDA5057B110E, 0xF860B408AB6492C2]]


def test_what_is_made_of_the_words_never_changes() -> None:
    words = Key.of(7, "mlm", 3).bits(DrawPurpose.SELECT, 4)
    assert uniform(words).tolist() == [0.2030215722141201, 0.13368112002789767, 0.7206525953492002, 0.6263071208052265]
    assert randint(words, 21128).tolist() == [4289, 2824, 15225, 13232]
    assert categorical(words, (1, 1, 1, 1)).tolist() == [0, 0, 2, 2]


def test_a_permutation_never_changes() -> None:
    assert permuted_index(np.arange(10), 10, Key.of(7, "epoch", 0)).tolist() == [5, 9, 0, 8, 3, 2, 1, 7, 4, 6]
    far = permuted_index(np.array([0, 1, 10**12 - 1]), 10**12, Key.of(7))
    assert far.tolist() == [692541780335, 374796684235, 64388059998]


@given(
    st.integers(-(2**70), 2**70),
    st.lists(st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5), max_size=4),
    st.sampled_from(DrawPurpose),
)
def test_a_word_follows_from_its_address_alone(seed: int, parts: list[int | str], lane: DrawPurpose) -> None:
    expected = [word(seed, parts, int(lane), i) for i in range(3)]
    assert Key.of(seed, *parts).bits(lane, 3).tolist() == expected
    assert Key.of(seed).fold_in(*parts).bits(lane, 1).tolist() == expected[:1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_a_row_has_the_same_words_alone_and_among_others(numbers: list[int]) -> None:
    together = Key.of(1, "rows").fold_in(np.array(numbers, dtype=np.int64)).bits(DrawPurpose.SHOW, 4)
    assert together.tolist() == [Key.of(1, "rows", number).bits(DrawPurpose.SHOW, 4).tolist() for number in numbers]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_ragged_rows_spread_the_words_that_each_row_draws(lengths: list[int]) -> None:
    key = Key.of(2).fold_in(np.arange(len(lengths)))
    rows = np.concatenate([[0], np.cumsum(lengths)])
    expected = [
        word
        for row, length in zip(key.bits(DrawPurpose.WORD, 6).tolist(), lengths, strict=True)
        for word in row[:length]
    ]
    assert key.bits_per_token(DrawPurpose.WORD, rows).tolist() == expected


def test_every_byte_of_the_words_is_uniform() -> None:
    words = Key.of(11, "uniform").fold_in(np.arange(400)).bits(DrawPurpose.SELECT, 500).reshape(-1)
    for byte in words.view(np.uint8).reshape(-1, 8).T:
        assert chi_square(np.bincount(byte, minlength=256)) < 4


@pytest.mark.parametrize("axis", [0, 1], ids=["first words of many rows", "many words of one row"])
def test_uniform_numbers_are_uniform_along_rows_and_along_counters(axis: int) -> None:
    shape = (20_000, 1) if axis == 0 else (1, 20_000)
    numbers = uniform(Key.of(5).fold_in(np.arange(shape[0])).bits(DrawPurpose.PLACE, shape[1])).reshape(-1)
    assert 0 <= numbers.min() < numbers.max() < 1
    assert chi_square(np.histogram(numbers, bins=100, range=(0, 1))[0]) < 4


def joint(left: np.ndarray, right: np.ndarray) -> float:
    """Evenness of the pairs of two series, in a grid of 16 by 16."""
    cells = (uniform(left) * 16).astype(int) * 16 + (uniform(right) * 16).astype(int)
    return chi_square(np.bincount(cells.reshape(-1), minlength=256))


def test_lanes_are_independent_of_each_other() -> None:
    key = Key.of(3, "lanes").fold_in(np.arange(200))
    drawn = {lane: key.bits(lane, 100) for lane in DrawPurpose}
    pairs = [(a, b) for a in DrawPurpose for b in DrawPurpose if a < b]
    assert max(joint(drawn[a], drawn[b]) for a, b in pairs) < 4.5
    assert len({int(w) for words in drawn.values() for w in words.reshape(-1)}) == len(DrawPurpose) * 200 * 100


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Key.of(1, "mlm"), Key.of(2, "mlm")),
        (Key.of(1, "mlm"), Key.of(1, "sop")),
        (Key.of(1, 0), Key.of(1, 1)),
        (Key.of(1, 2, 3), Key.of(1, 3, 2)),
        (Key.of(1), Key.of(1, 0)),
    ],
    ids=["seed", "task", "number", "order of parts", "one part more"],
)
def test_addresses_that_differ_in_anything_are_unrelated(left: Key, right: Key) -> None:
    rows = np.arange(200)
    a, b = (key.fold_in(rows).bits(DrawPurpose.SELECT, 100) for key in (left, right))
    assert abs(joint(a, b)) < 4
    assert not np.intersect1d(a, b).size


def test_neighbouring_rows_and_neighbouring_words_are_unrelated() -> None:
    words = Key.of(9).fold_in(np.arange(200)).bits(DrawPurpose.SELECT, 200)
    assert abs(joint(words[:-1], words[1:])) < 4
    assert abs(joint(words[:, :-1], words[:, 1:])) < 4


def test_bounded_numbers_stay_below_their_bound_and_are_even() -> None:
    words = Key.of(4).bits(DrawPurpose.TOKEN, 50_000)
    assert chi_square(np.bincount(randint(words, 97), minlength=97)) < 4
    bounds = np.arange(1, 50_001)
    assert (randint(words, bounds) < bounds).all()
    assert (randint(words, 1) == 0).all()


def test_choices_follow_their_shares() -> None:
    drawn = np.bincount(categorical(Key.of(4).bits(DrawPurpose.SHOW, 100_000), (8, 1, 0, 1)), minlength=4) / 100_000
    assert drawn[2] == 0
    assert np.abs(drawn - (0.8, 0.1, 0.0, 0.1)).max() < 0.004


@pytest.mark.parametrize("seed", [0, 1])
def test_a_permutation_of_any_size_moves_every_index_to_its_own_place(seed: int) -> None:
    for size in range(1, 301):
        assert np.array_equal(np.sort(permuted_index(np.arange(size), size, Key.of(seed))), np.arange(size))


@given(st.integers(0, 2**32), st.lists(st.integers(0, 10**12 - 1), unique=True, min_size=2, max_size=300))
def test_a_permutation_of_a_million_million_has_no_collisions(seed: int, sample: list[int]) -> None:
    images = permuted_index(np.array(sample), 10**12, Key.of(seed))
    assert len(set(images.tolist())) == len(sample)
    assert images.min() >= 0
    assert images.max() < 10**12


def test_an_index_goes_to_the_same_place_alone_and_among_others() -> None:
    together = permuted_index(np.arange(37), 37, Key.of(8))
    alone = [int(permuted_index(np.array([i]), 37, Key.of(8))[0]) for i in range(37)]
    assert together.tolist() == alone


@pytest.mark.parametrize("size", [5, 10, 40, 100, 300])
def test_over_many_keys_an_index_goes_everywhere_alike(size: int) -> None:
    images = np.stack([permuted_index(np.array([0, size - 1]), size, Key.of(seed)) for seed in range(3000)])
    assert chi_square(np.bincount(images[:, 0], minlength=size)) < 4
    assert chi_square(np.bincount(images[:, 1], minlength=size)) < 4


def test_two_keys_give_unrelated_orders() -> None:
    one, other = (permuted_index(np.arange(20_000), 20_000, Key.of(1, "epoch", epoch)) for epoch in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.03
    assert np.count_nonzero(one == other) < 10
