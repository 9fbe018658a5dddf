from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.span_corruption import SpanCorruption


@given(data=st.data())
def test_laws_and_a_loop_that_writes_the_same(data, examples, laws, vocab):
    example = data.draw(examples)
    rate, mean = data.draw(st.sampled_from([(0.15, 3.0), (0.5, 1.0), (0.9, 1.0), (0.6, 8.0)]))
    instance = laws(SpanCorruption(rate, mean), example)
    target = instance.targets[0]
    marks = set(vocab.sentinels.tolist())
    for row, (first, last) in enumerate(pairwise(example.rows.tolist())):
        said = slice(target.rows[row], target.rows[row + 1])
        text = [(i, p) for i, p in zip(target.ids[said].tolist(), target.position[said].tolist(), strict=True)]
        removed = {p for i, p in text[:-2] if i not in marks}
        shown, asked = _written_by_a_loop(example, first, last, removed, vocab)
        assert instance.inputs.ids[instance.inputs.rows[row] : instance.inputs.rows[row + 1]].tolist() == shown
        assert text == asked
        free = int((~example.protected[first:last]).sum())
        assert len(removed) == (1 if free == 1 else min(max(round(free * rate), 1), free - 1))


def _written_by_a_loop(example, first, last, removed, vocab):
    shown, asked, number = [], [], 0
    for i in range(first, last):
        token, place = int(example.ids[i]), i - first
        if place not in removed:
            shown.append(token)
            continue
        border = i > first and example.segment[i] != example.segment[i - 1]
        if place - 1 not in removed or border:
            shown.append(int(vocab.sentinels[number]))
            asked.append((shown[-1], place))
            number += 1
        asked.append((token, place))
    return shown, [*asked, (int(vocab.sentinels[number]), last - first), (vocab.sep, last - first)]


def test_the_lengths_of_the_paper(plain, vocab, keys):
    """T5 turns 568 tokens into 511 and a separator; the target has 85 tokens, 28 sentinels and two that close it."""
    instance = SpanCorruption()(plain(20, 568), vocab, keys(20))
    assert set(np.diff(instance.inputs.rows)) == {2 + 568 - 85 + 28}
    assert set(np.diff(instance.targets[0].rows)) == {85 + 28 + 2}
    spans = np.flatnonzero(np.isin(instance.inputs.ids, vocab.sentinels))
    assert not (np.diff(spans) == 1).any()
    first = instance.inputs.ids[instance.inputs.rows[:-1] + 1]
    assert not np.isin(first, vocab.sentinels).any()


def test_span_lengths_have_the_asked_mean_and_every_place_is_reached(plain, vocab, keys):
    target = SpanCorruption(mean_span_length=5.0)(plain(400, 200), vocab, keys(400)).targets[0]
    marks = np.isin(target.ids, vocab.sentinels)
    assert (~marks).sum() - 400 == 400 * 30
    assert marks.sum() - 400 == 400 * 6
    asked = np.bincount(target.position[~marks], minlength=202)
    assert asked[1] == 0  # text comes first
    assert (asked[3:200] > 0).all()


def test_a_span_across_a_special_token_is_split_there(vocab, pair, laws):
    example = pair(1, 4, 4)
    instance = laws(SpanCorruption(rate=0.8, mean_span_length=8.0), example)
    a, b, c = vocab.sentinels[:3].tolist()
    first, *rest = example.ids[1:].tolist()
    assert instance.inputs.ids.tolist() == [vocab.cls, first, rest[0], a, vocab.sep, b, vocab.sep]
    assert instance.targets[0].ids.tolist() == [a, *rest[1:3], b, *rest[4:8], c, vocab.sep]


def test_fewer_spans_are_drawn_when_sentinels_are_few_but_no_fewer_tokens(vocab, pair, keys):
    few = replace(vocab, sentinels=vocab.sentinels[:4])
    target = SpanCorruption(rate=0.5, mean_span_length=1.0)(pair(50, 20, 20), few, keys(50)).targets[0]
    assert (target.ids >= 10).sum() - np.isin(target.ids, few.sentinels).sum() == 50 * 20


@given(data=st.data(), count=st.integers(2, 5))
def test_few_sentinels_are_never_exceeded(data, count, examples, laws, vocab):
    few = replace(vocab, sentinels=vocab.sentinels[:count])
    instance = laws(SpanCorruption(rate=0.5, mean_span_length=1.0), data.draw(examples), few)
    runs = np.isin(instance.inputs.ids, few.sentinels)
    for first, last in pairwise(instance.inputs.rows):
        assert 1 <= runs[first:last].sum() <= count - 1


def test_refusals_are_sentences(vocab, plain, keys):
    with pytest.raises(RecipeError, match=r"SpanCorruption needs a rate between 0 and 1, found 1\.5"):
        SpanCorruption(rate=1.5)
    with pytest.raises(RecipeError, match=r"mean span length of 1 or more, found 0\.5"):
        SpanCorruption(mean_span_length=0.5)
    with pytest.raises(RecipeError, match="at least 2 sentinels"):
        SpanCorruption()(plain(1, 5), replace(vocab, sentinels=vocab.sentinels[:0]), keys(1))
    assert UnitKind.WORD not in SpanCorruption().required_units
