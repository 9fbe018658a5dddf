"""Entities from three places, and how they are combined."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import InputError
from unmask.records import Document, Layer, Marks, Spans
from unmask.text.dictionaries import Term
from unmask.text.entities import Entities, Given, NamedWords, Names, merge
from unmask.text.given import first_wins
from unmask.text.sentences import Sentences
from unmask.text.terms import Terms
from unmask.text.words import Words

TEXT = "张伟在北京大学学习语言模型。"


def found(document: Document, marks: Marks) -> list[tuple[str, str]]:
    spans = zip(marks.spans.start.tolist(), marks.spans.end.tolist(), marks.labels, strict=True)
    return [(document.text[start:end], label) for start, end, label in spans]


def terms(*texts: str) -> Terms:
    return Terms(tuple(Term(text, "term") for text in texts))


def test_name_tags() -> None:
    document = Document("d", TEXT)
    expected = [("张伟", "person"), ("北京大学", "organisation")]
    assert found(document, Names().find(document)) == expected
    named = NamedWords()(document)
    assert found(document, named.marks[Layer.ENTITY]) == expected


@given(st.lists(st.sampled_from(["张伟", "北京", "，", " ", "word", "3.14", "语言模型", "\n", "é"])).map("".join))
def test_words_with_names_are_the_same_words(text: str) -> None:
    document = Sentences()(Document("d", text))
    one, two = NamedWords()(document), Words()(document)
    assert one.marks[Layer.WORD].spans.start.tolist() == two.marks[Layer.WORD].spans.start.tolist()
    assert one.marks[Layer.WORD].spans.end.tolist() == two.marks[Layer.WORD].spans.end.tolist()
    starts = set(one.marks[Layer.WORD].spans.start.tolist())
    assert set(one.marks[Layer.ENTITY].spans.start.tolist()) <= starts


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
    document = Document("d", TEXT).with_marks(Layer.ENTITY, Marks(Spans.of((3, 5)), ("city",)))
    both = Entities((Given(), terms("语言模型", "北京大学"), Names()))
    assert found(document, both(document).marks[Layer.ENTITY]) == [
        ("张伟", "person"),
        ("北京", "city"),
        ("语言模型", "term"),
    ]
    assert found(document, NamedWords()(document).marks[Layer.ENTITY]) == [("张伟", "person"), ("北京", "city")]
    assert both.describe().count("then") == 2


def test_nothing_found_is_no_marks() -> None:
    document = Document("d", "plain words")
    assert len(Entities((Given(), terms("语"), Names()))(document).marks[Layer.ENTITY].spans) == 0
    assert len(merge(()).spans) == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=15))
def test_of_overlapping_entities_the_first_listed_stays(drawn: list[tuple[int, int]]) -> None:
    entities = [(start, start + length, str(number)) for number, (start, length) in enumerate(drawn)]
    expected: list[tuple[int, int, str]] = []
    for entity in entities:
        if all(entity[1] <= other[0] or other[1] <= entity[0] for other in expected):
            expected.append(entity)
    assert first_wins(entities) == sorted(expected)


def test_empty_dictionaries_are_refused() -> None:
    with pytest.raises(InputError, match="at least one term"):
        Terms(())
    with pytest.raises(InputError, match="none may be empty"):
        terms("")


def test_terms_travel_to_another_process_and_describe_themselves() -> None:
    sent = deepcopy(terms("语言"))  # the way it is sent: rebuilt from its terms
    assert len(sent.find(Document("d", TEXT)).spans) == 1
    assert terms("a").describe() == terms("a").describe() != terms("b").describe()
