"""Phrases: learned from a corpus, kept in a file, marked in text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import InputError, RecipeError
from unmask.core.records import Document, UnitKind
from unmask.data.text.units.collocations import CollocationConfig, learn_phrases
from unmask.data.text.units.phrases import PhraseMatcher
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words


def ready(text: str) -> Document:
    return Words()(Sentences()(Document("d", text)))


def marked(text: str, *phrases: str) -> list[str]:
    document = PhraseMatcher(tuple(tuple(phrase.split()) for phrase in phrases))(ready(text))
    spans = document.char_spans[UnitKind.PHRASE].spans
    return [text[start:end] for start, end in zip(spans.start, spans.end, strict=True)]


def test_the_longest_phrase_is_marked_from_the_left() -> None:
    text = "the New York Times in New York, Times"
    assert marked(text, "New York", "New York Times", "Times in") == ["New York Times", "New York"]
    assert marked("我们使用语言模型。", "语言 模型") == ["语言模型"]
    assert marked("ends with New", "New York", "with New", "with New York") == ["with New"]


def test_a_phrase_does_not_cross_a_sentence_border() -> None:
    assert marked("machine\nlearning", "machine learning") == []
    assert marked("machine  learning", "machine learning") == ["machine  learning"]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.sets(st.text("abc", min_size=2, max_size=4), max_size=6))
def test_marking_agrees_with_a_plain_search(words: list[str], phrases: set[str]) -> None:
    expected, place = [], 0
    while place < len(words):
        fits = [p for p in phrases if "".join(words).startswith(p, place)]
        best = max(fits, key=len, default="")
        expected += [" ".join(best)] if best else []
        place += len(best) or 1
    assert marked(" ".join(words), *(" ".join(p) for p in phrases)) == expected


def corpus() -> list[Document]:
    fillers = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("alo", "eni", "uro", "ima", "oda")]
    lines = []
    for number in range(60):
        first, second = fillers[number % len(fillers)], fillers[(number * 7 + 3) % len(fillers)]
        lines.append(f"{first} machine learning {second}. {second} New York Times {first}. We saw the {first} of 2020.")
    return [ready(line) for line in lines]


def test_words_that_belong_together_are_learned_and_chance_neighbours_are_not() -> None:
    learned = learn_phrases(corpus())
    assert set(learned.phrases) == {
        ("machine", "learning"),
        ("New", "York"),
        ("York", "Times"),
        ("New", "York", "Times"),
    }


def test_learning_does_not_depend_on_the_order_of_documents() -> None:
    assert learn_phrases(corpus()) == learn_phrases(reversed(corpus()))


def test_frequent_phrases_survive_when_memory_is_short() -> None:
    learned = learn_phrases(corpus(), CollocationConfig(max_candidates=150))
    assert {("machine", "learning"), ("New", "York", "Times")} <= set(learned.phrases)


def test_function_words_numbers_and_punctuation_are_in_no_phrase() -> None:
    learned = learn_phrases([ready("of course, in 2020 of course, in 2020")] * 10, CollocationConfig(min_npmi=0.0))
    assert learned.phrases == ()


def test_chinese_phrases_are_learned() -> None:
    documents = [
        ready(f"人们喜欢{x}语言模型{y}。{y}出现。{x}出现") for x, y in zip("山水火土金木", "东西南北左右", strict=True)
    ]
    assert ("语言", "模型") in learn_phrases(documents).phrases


def test_a_list_survives_its_file(tmp_path: Path) -> None:
    phrases = PhraseMatcher((("语言", "模型"), ("New", "York", "Times")))
    phrases.save(tmp_path / "p.txt")
    assert (tmp_path / "p.txt").read_text(encoding="utf-8") == "语言 模型\nNew York Times\n"
    assert PhraseMatcher.load(tmp_path / "p.txt") == phrases
    assert PhraseMatcher.load(tmp_path / "p.txt").describe() == phrases.describe()


def test_bad_lists_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("# good\na b\nlonely\n")
    with pytest.raises(InputError, match=r"p\.txt:3"):
        PhraseMatcher.load(tmp_path / "p.txt")
    with pytest.raises(InputError, match=r"there is no such file: .*none\.txt\.$"):
        PhraseMatcher.load(tmp_path / "none.txt")
    with pytest.raises(InputError, match="two or more"):
        PhraseMatcher((("one",),))
    with pytest.raises(RecipeError, match="Collocation"):
        CollocationConfig(max_words=1)


def test_phrases_need_words() -> None:
    with pytest.raises(RecipeError, match="Words before Phrases"):
        PhraseMatcher(())(Document("d", "x"))
