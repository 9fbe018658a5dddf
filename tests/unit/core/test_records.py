"""Records refuse what cannot be, and unit bytes give back the spans they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.records import (
    NO_SPANS,
    CharSpans,
    Cloze,
    Document,
    RowBatch,
    Spans,
    TokenDoc,
    TokenUnits,
    UnitFlag,
    UnitKind,
)

Pairs = list[tuple[int, int]]


def pairs(spans: Spans) -> Pairs:
    return list(zip(spans.start.tolist(), spans.end.tolist(), strict=True))


@st.composite
def spans_within(draw: st.DrawFn, length: int) -> Pairs:
    """Sorted, disjoint, non-empty spans inside `length`, touching or with gaps."""
    borders = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    return [pair for pair in pairwise(borders) if draw(st.booleans())]


@st.composite
def texts(draw: st.DrawFn) -> tuple[int, dict[UnitKind, Pairs]]:
    length = draw(st.integers(0, 20))
    layers = draw(st.sets(st.sampled_from([layer for layer in UnitKind if layer is not UnitKind.TOKEN])))
    return length, {layer: draw(spans_within(length)) for layer in layers}


def made(length: int, given: Mapping[UnitKind, Pairs]) -> TokenUnits:
    return TokenUnits.of(length, {layer: Spans.of(*found) for layer, found in given.items()})


def read_loop(length: int, given: Mapping[UnitKind, Pairs], layer: UnitKind) -> Pairs:
    """What a unit map must answer, token by token: the oracle."""
    if layer is UnitKind.TOKEN:
        return [(i, i + 1) for i in range(length)]
    if layer in (UnitKind.PHRASE, UnitKind.ENTITY):
        return list(given.get(layer, []))
    turns = {start for start, _ in given.get(UnitKind.TURN, [])}
    starts = turns if layer is UnitKind.TURN else {0} | turns | {start for start, _ in given.get(UnitKind.SENTENCE, [])}
    if layer is UnitKind.WORD:
        words = given.get(UnitKind.WORD, [])
        starts |= {start for start, _ in words}
        starts |= {i for i in range(length) if not any(start <= i < end for start, end in words)}
    order = [start for start in sorted(starts) if start < length]
    return list(zip(order, [*order[1:], length], strict=True)) if order else []


@given(texts())
def test_units_come_back_as_a_loop_reads_them(text: tuple[int, dict[UnitKind, Pairs]]) -> None:
    length, given_spans = text
    units = made(length, given_spans)
    assert len(units) == length
    for layer in UnitKind:
        assert pairs(units.spans(layer)) == read_loop(length, given_spans, layer), layer


@given(texts())
def test_units_read_and_made_again_are_the_same_bytes(text: tuple[int, dict[UnitKind, Pairs]]) -> None:
    units = made(*text)
    again = TokenUnits.of(len(units), {layer: units.spans(layer) for layer in UnitKind})
    assert again.bits.tobytes() == units.bits.tobytes()


@given(texts())
def test_words_and_sentences_cover_everything_and_no_word_crosses_a_sentence(
    text: tuple[int, dict[UnitKind, Pairs]],
) -> None:
    units = made(*text)
    for layer in (UnitKind.WORD, UnitKind.SENTENCE):
        assert units.spans(layer).lengths.sum() == len(units)
    sentence_starts = units.spans(UnitKind.SENTENCE).start
    assert np.isin(sentence_starts, units.spans(UnitKind.WORD).start).all()


def test_units_that_touch_stay_apart() -> None:
    units = made(5, {UnitKind.PHRASE: [(0, 2), (2, 4)], UnitKind.ENTITY: [(3, 4), (4, 5)]})
    assert pairs(units.spans(UnitKind.PHRASE)) == [(0, 2), (2, 4)]
    assert pairs(units.spans(UnitKind.ENTITY)) == [(3, 4), (4, 5)]


def test_the_unit_byte_never_changes() -> None:
    units = made(
        4,
        {
            UnitKind.WORD: [(0, 2)],
            UnitKind.PHRASE: [(0, 3)],
            UnitKind.ENTITY: [(1, 2)],
            UnitKind.SENTENCE: [(0, 3), (3, 4)],
        },
    )
    assert units.bits.dtype == np.uint8
    assert units.bits.tolist() == [1 + 2 + 4 + 8, 8 + 16 + 32, 1 + 8, 1 + 2]
    assert [
        UnitFlag.WORD,
        UnitFlag.SENTENCE,
        UnitFlag.PHRASE,
        UnitFlag.IN_PHRASE,
        UnitFlag.ENTITY,
        UnitFlag.IN_ENTITY,
    ] == [1, 2, 4, 8, 16, 32]
    assert [UnitFlag.TURN, UnitFlag.REPLY] == [64, 128]


def test_a_turn_is_a_sentence_and_knows_who_speaks() -> None:
    units = made(5, {UnitKind.TURN: [(0, 3), (3, 5)]}).with_replies(np.array([3]))
    assert units.bits.tolist() == [1 + 2 + 64, 1, 1, 1 + 2 + 64 + 128, 1]
    assert pairs(units.spans(UnitKind.SENTENCE)) == pairs(units.spans(UnitKind.TURN)) == [(0, 3), (3, 5)]


@given(st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), max_size=5))
def test_spans_exist_exactly_when_they_are_sorted_disjoint_and_not_empty(table: Pairs) -> None:
    ends = [0, *(end for _, end in table)]
    fine = all(before <= start < end for before, (start, end) in zip(ends, table, strict=False))
    if fine:
        assert pairs(Spans.of(*table)) == table
    else:
        with pytest.raises(ValueError, match="span"):
            Spans.of(*table)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([(2, 2)], "empty"),
        ([(3, 1)], "ends before it starts"),
        ([(0, 3), (2, 4)], "overlap"),
        ([(4, 5), (0, 1)], "not in order"),
        ([(-1, 1)], "not in order"),
    ],
)
def test_spans_say_why_they_refuse(table: Pairs, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Spans.of(*table)


def test_spans_need_as_many_starts_as_ends() -> None:
    with pytest.raises(ValueError, match="as many starts as ends"):
        Spans(np.array([0, 2]), np.array([1]))
    with pytest.raises(ValueError, match="as many starts as ends"):
        Spans(np.array([[0]]), np.array([[1]]))


def test_spans_know_their_number_and_lengths_and_cannot_be_replaced() -> None:
    spans = Spans.of((0, 2), (2, 5))
    assert len(spans) == 2
    assert spans.lengths.tolist() == [2, 3]
    assert len(NO_SPANS) == 0
    with pytest.raises(FrozenInstanceError):
        spans.start = spans.end  # type: ignore[misc]


def test_a_document_takes_marks_inside_its_text_only() -> None:
    words = CharSpans(Spans.of((0, 2), (2, 4)))
    document = Document("d", "今天天气").with_char_spans(UnitKind.WORD, words)
    assert document.char_spans == {UnitKind.WORD: words}
    assert document.with_char_spans(UnitKind.ENTITY, CharSpans(Spans.of((1, 2)), ("x",))).char_spans.keys() == {
        UnitKind.WORD,
        UnitKind.ENTITY,
    }
    with pytest.raises(ValueError, match="document d: a word mark ends beyond the text"):
        Document("d", "今天天").with_char_spans(UnitKind.WORD, words)


def test_marks_have_a_label_each_or_none() -> None:
    with pytest.raises(ValueError, match="1 labels for 2 marks"):
        CharSpans(Spans.of((0, 1), (1, 2)), ("person",))


def test_a_tokenised_document_has_a_unit_byte_for_every_token() -> None:
    with pytest.raises(ValueError, match="3 tokens but 2 unit bytes"):
        TokenDoc(np.arange(3, dtype=np.int32), TokenUnits.of(2, {}))


@pytest.mark.parametrize("answers", [0, 1])
def test_a_cloze_asks_something_and_has_every_answer(answers: int) -> None:
    positions = np.arange(2 * answers)
    with pytest.raises(ValueError, match="a cloze needs an answer"):
        Cloze(positions, np.zeros(answers, dtype=np.int32), NO_SPANS)


def test_an_example_counts_rows_and_not_tokens() -> None:
    zeros = np.zeros(5, dtype=np.int32)
    example = RowBatch(
        ids=zeros,
        segment=zeros.astype(np.uint8),
        document=zeros,
        protected=zeros.astype(np.bool_),
        units=TokenUnits.of(5, {}),
        rows=np.array([0, 2, 5]),
    )
    assert len(example) == 2
    assert example.lengths.tolist() == [2, 3]
