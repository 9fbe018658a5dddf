"""Entities from three places, and how they are combined."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import InputError
from unmask.core.records import CharSpans, Document, Spans, UnitKind
from unmask.data.text.files.word_lists import TermEntry
from unmask.data.text.units.dictionary_entities import TermMatcher
from unmask.data.text.units.entities import Entities, GivenEntities, TaggerEntities, WordsWithEntities, merge_spans
from unmask.data.text.units.given_entities import resolve_overlaps
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words

TEXT = "张伟在北京大学学习语言模型。"


def found(document: Document, marks: CharSpans) -> list[tuple[str, str]]:
    spans = zip(marks.spans.start.tolist(), marks.spans.end.tolist(), marks.labels, strict=True)
    return [(document.text[start:end], label) for start, end, label in spans]


def terms(*texts: str) -> TermMatcher:
    return TermMatcher(tuple(TermEntry(text, "term") for text in texts))


def test_name_tags() -> None:
    document = Document("d", TEXT)
    expected = [("张伟", "person"), ("北京大学", "organisation")]
    assert found(document, TaggerEntities().find(document)) == expected
    named = WordsWithEntities()(document)
    assert found(document, named.char_spans[UnitKind.ENTITY]) == expected


@given(st.lists(st.sampled_from(["张伟", "北京", "，", " ", "word", "3.14", "语言模型", "\n", "é"])).map("".join))
def test_words_with_names_are_the_same_words(text: str) -> None:
    document = Sentences()(Document("d", text))
    one, two = WordsWithEntities()(document), Words()(document)
    assert one.char_spans[UnitKind.WORD].spans.start.tolist() == two.char_spans[UnitKind.WORD].spans.start.tolist()
    assert one.char_spans[UnitKind.WORD].spans.end.tolist() == two.char_spans[UnitKind.WORD].spans.end.tolist()
    starts = set(one.char_spans[UnitKind.WORD].spans.start.tolist())
    assert set(one.char_spans[UnitKind.ENTITY].spans.start.tolist()) <= starts


def test_the_longest_term_is_found_first_from_the_left() -> None:
    document = Document("d", "北京大学生在北京")
    assert found(document, terms("北京", "北京大学", "大学生").find(document)) == [
        ("北京大学", "term"),
        ("北京", "term"),
    ]


def test_terms_are_not_found_inside_spelled_words_and_do_not_hide_others_there() -> None:
    document = Document("d", "A cart with art, box art deco; art中 3.14 and 14.")
    assert [text for text, _ in found(document, terms("art", "x art", "art deco", "14").find(document))] == [
        "art",
        "art deco",
        "art",
        "14",
    ]


@given(
    st.lists(st.sampled_from(["ab", "b", "abc", "中", "中文", "文字", "a b"]), min_size=1, unique=True),
    st.text(alphabet="abc 中文字", max_size=30),
)
def test_terms_agree_with_a_plain_search(names: list[str], text: str) -> None:
    expected, place = [], 0
    while place < len(text):
        fits = [n for n in names if text.startswith(n, place) and _free(text, place) and _free(text, place + len(n))]
        best = max(fits, key=len, default="")
        if best:
            expected.append((place, place + len(best)))
        place += len(best) or 1
    spans = terms(*names).find(Document("d", text)).spans
    assert list(zip(spans.start.tolist(), spans.end.tolist(), strict=True)) == expected


def _free(text: str, place: int) -> bool:
    """Whether a word may begin or end here."""
    return not (0 < place < len(text) and text[place - 1] in "abc" and text[place] in "abc")


def test_the_earlier_finder_wins() -> None:
    document = Document("d", TEXT).with_char_spans(UnitKind.ENTITY, CharSpans(Spans.of((3, 5)), ("city",)))
    both = Entities((GivenEntities(), terms("语言模型", "北京大学"), TaggerEntities()))
    assert found(document, both(document).char_spans[UnitKind.ENTITY]) == [
        ("张伟", "person"),
        ("北京", "city"),
        ("语言模型", "term"),
    ]
    assert found(document, WordsWithEntities()(document).char_spans[UnitKind.ENTITY]) == [
        ("张伟", "person"),
        ("北京", "city"),
    ]
    assert both.describe().count("then") == 2


def test_nothing_found_is_no_marks() -> None:
    document = Document("d", "plain words")
    assert (
        len(Entities((GivenEntities(), terms("语"), TaggerEntities()))(document).char_spans[UnitKind.ENTITY].spans) == 0
    )
    assert len(merge_spans(()).spans) == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=15))
def test_of_overlapping_entities_the_first_listed_stays(drawn: list[tuple[int, int]]) -> None:
    entities = [(start, start + length, str(number)) for number, (start, length) in enumerate(drawn)]
    expected: list[tuple[int, int, str]] = []
    for entity in entities:
        if all(entity[1] <= other[0] or other[1] <= entity[0] for other in expected):
            expected.append(entity)
    assert resolve_overlaps(entities) == sorted(expected)


def test_empty_dictionaries_are_refused() -> None:
    with pytest.raises(InputError, match="at least one term"):
        TermMatcher(())
    with pytest.raises(InputError, match="none may be empty"):
        terms("")


def test_terms_travel_to_another_process_and_describe_themselves() -> None:
    sent = deepcopy(terms("语言"))  # the way it is sent: rebuilt from its terms
    assert len(sent.find(Document("d", TEXT)).spans) == 1
    assert terms("a").describe() == terms("a").describe() != terms("b").describe()
