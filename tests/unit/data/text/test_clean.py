"""Cleaning: what goes, what stays, and that marks follow."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.records import CharSpans, Document, DroppedInput, Spans, UnitKind
from unmask.data.text.clean import Cleaner, CleanResult
from unmask.data.text.drop_reasons import DropReason

NOISY = st.text(
    alphabet=st.sampled_from("ab中文\n\r\t\0\x07\x7f\x85\xa0\u3000\ufeff\u200d\u2028é\u0301👍") | st.characters(),
    max_size=40,
)


def clean(text: str) -> str:
    result = Cleaner(min_chars=0)(Document("d", text)).result
    assert isinstance(result, Document)
    return result.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\0b\x07c", "abc"),
        ("一\ufeff二", "一二"),
        ("x\ud800y", "xy"),
        ("a\tb\u3000c\xa0d", "a b c d"),
        ("a\r\nb\rc\u2028d\x85e", "a\nb\nc\nd\ne"),
        ("👨\u200d👩\u200d👧 e\u0301 \u200fשלום", "👨\u200d👩\u200d👧 e\u0301 \u200fשלום"),
        ("ＡＢＣ ﬁ", "ＡＢＣ ﬁ"),
    ],
)
def test_what_becomes_of_characters(before: str, after: str) -> None:
    assert clean(before) == after


def test_a_clean_document_comes_back_as_it_is() -> None:
    document = Document("d", "今天天气很好。\nNothing to do.")
    assert Cleaner()(document) == CleanResult(document)


def test_removed_characters_are_counted_and_line_ends_are_not() -> None:
    assert Cleaner()(Document("d", "a\0\0b\r\nc\td\ufeff")).removed == 3


@pytest.mark.parametrize("text", ["", " \n\t ", "x", " 。 ", "\0\0\0\0a"])
def test_near_empty_documents_are_dropped(text: str) -> None:
    result = Cleaner(min_chars=2)(Document("f:7", text)).result
    assert isinstance(result, DroppedInput)
    assert (result.reason, result.where) == (DropReason.NEAR_EMPTY, "f:7")


def test_two_visible_characters_are_enough_wherever_they_stand() -> None:
    assert isinstance(Cleaner(min_chars=2)(Document("d", "  a \n b")).result, Document)


@given(NOISY)
def test_nothing_invisible_is_left_but_spaces_and_newlines(text: str) -> None:
    cleaned = clean(text)
    assert all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in cleaned)
    assert all(c in " \n" for c in cleaned if c.isspace())
    assert clean(cleaned) == cleaned


@given(NOISY, NOISY, NOISY)
def test_given_marks_follow_the_text(left: str, middle: str, right: str) -> None:
    text = left + "|" + middle + "|" + right
    span = Spans.of((len(left), len(left) + len(middle) + 2))
    marked = Document("d", text).with_char_spans(UnitKind.ENTITY, CharSpans(span, ("name",)))
    result = Cleaner(min_chars=0)(marked).result
    assert isinstance(result, Document)
    moved = result.char_spans[UnitKind.ENTITY].spans
    assert result.text[moved.start[0] : moved.end[0]] == clean("|" + middle + "|")


def test_a_mark_of_which_nothing_is_left_disappears() -> None:
    marked = Document("d", "a\0b").with_char_spans(
        UnitKind.ENTITY, CharSpans(Spans.of((0, 1), (1, 2), (2, 3)), ("x", "y", "z"))
    )
    result = Cleaner()(marked).result
    assert isinstance(result, Document)
    assert result.char_spans[UnitKind.ENTITY].labels == ("x", "z")
    assert result.char_spans[UnitKind.ENTITY].spans.start.tolist() == [0, 1]
