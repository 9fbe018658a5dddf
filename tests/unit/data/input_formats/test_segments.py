"""Rows of one or two segments: where they begin and end, how often there are two, and a slow oracle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import TEXT, VOCAB, make_corpus

from unmask.core.errors import RecipeError
from unmask.core.records import RowBatch
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import build_rows
from unmask.data.input_formats.segments import OneOrTwoSegments

KEY = Key.of(3, "plan")
documents = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=8)


def built(part: OneOrTwoSegments, corpus: Corpus, length: int) -> RowBatch:
    plan = part.plan(corpus, length, KEY)
    return build_rows(corpus, plan, np.arange(len(plan)), part.template, VOCAB)


def segments_of(example: RowBatch, row: int) -> list[list[int]]:
    """The text of each segment, as addresses."""
    cut = slice(example.rows[row], example.rows[row + 1])
    free = ~example.protected[cut]
    ids, segment = example.ids[cut][free] - TEXT, example.segment[cut][free]
    return [ids[segment == number].tolist() for number in range(int(segment.max()) + 1)]


@settings(max_examples=80, deadline=None)
@given(documents, st.integers(8, 40), st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 1.0]))
def test_rows_are_stretches_of_one_document(
    lengths: list[list[int]], length: int, shards: int, single: float, short: float
) -> None:
    corpus = make_corpus(lengths, min(shards, len(lengths)))
    example = built(OneOrTwoSegments(single, short), corpus, length)
    assert (example.lengths <= length).all()
    ends = np.cumsum([sum(document) for document in lengths])
    seen: list[int] = []
    for row in range(len(example)):
        found = segments_of(example, row)
        flat = [token for segment in found for token in segment]
        assert all(found)
        assert flat == list(range(flat[0], flat[0] + len(flat)))  # B goes on where A ends
        assert np.searchsorted(ends, flat[0], side="right") == np.searchsorted(ends, flat[-1], side="right")
        assert len(found) <= (1 if single == 1 else 2)
        seen += flat
    assert seen == sorted(set(seen))
    assert {0, *ends[:-1].tolist()} <= set(seen)  # every document begins a row


def slowly(sentences: Sequence[int], target: int, length: int, coin: bool) -> tuple[int, int]:
    """The released procedure on the sentences of one row, of which B never returns to A: the sizes of A and B."""
    first, second, half = 0, 0, (target - 3) // 2
    for size in sentences:
        fits = first == 0 or first + size < half or (first < half and coin)
        if second == 0 and fits:
            first += size
        else:
            second += size
    first = min(first, length - 2)
    return first, min(second, max(0, length - first - 3))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_a_row_is_cut_as_the_released_code_cuts_it(sentences: list[int]) -> None:
    """Without single or short rows only the coin is open: each row has one of two forms."""
    length = 32
    example = built(OneOrTwoSegments(single_fraction=0.0, short_fraction=0.0), make_corpus([sentences]), length)
    begin = 0
    for row in range(len(example)):
        end = begin + 1
        while end < len(sentences) and sum(sentences[begin:end]) < length:
            end += 1
        a, *b = map(len, segments_of(example, row))
        forms = [slowly(sentences[begin:end], length, length, coin) for coin in (False, True)]
        assert (a, sum(b)) in forms
        begin = end
    assert begin == len(sentences)


def test_shares_of_single_and_of_short_rows() -> None:
    corpus = make_corpus([[8] * 4000])
    long = built(OneOrTwoSegments(single_fraction=0.1, short_fraction=0.0), corpus, 64)
    one = np.mean([len(segments_of(long, row)) == 1 for row in range(len(long))])
    assert abs(one - 0.1) < 5 * (0.09 / len(long)) ** 0.5
    assert (long.lengths[:-1] >= 63).all()
    some = built(OneOrTwoSegments(single_fraction=0.1, short_fraction=0.05), corpus, 64)
    short = np.mean(some.lengths < 56)
    assert 0.02 < short < 0.08
    starts = [segments_of(long, row)[0][0] for row in range(len(long))]
    assert all(after - before == 64 for before, after in pairwise(starts))


def test_short_rows_aim_at_any_length_from_five_on() -> None:
    example = built(OneOrTwoSegments(single_fraction=0.0, short_fraction=1.0), make_corpus([[1] * 40_000]), 64)
    sizes = np.array([sum(map(len, segments_of(example, row))) for row in range(len(example) - 1)])
    assert sizes.min() == 5
    assert abs(np.mean(sizes <= 34) - 0.5) < 5 * (0.25 / len(sizes)) ** 0.5


def test_the_sentence_at_the_half_goes_to_either_side() -> None:
    example = built(OneOrTwoSegments(single_fraction=0.0, short_fraction=0.0), make_corpus([[8] * 4000]), 64)
    sizes = [len(segments_of(example, row)[0]) for row in range(len(example))]
    assert set(sizes) == {24, 32}  # half of 61 is 30: three sentences fit, the fourth is tossed for
    assert abs(np.mean(np.array(sizes) == 32) - 0.5) < 5 * (0.25 / len(sizes)) ** 0.5


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"between 0 and 1, found 0.1 and 1.5"):
        OneOrTwoSegments(short_fraction=1.5)
