"""Words of any script."""

from __future__ import annotations

import unicodedata
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import InputError, RecipeError
from unmask.core.records import Document, UnitKind
from unmask.data.text.files.word_lists import TermEntry, UserWord, read_terms, read_words
from unmask.data.text.units.segmenters import PythonJieba, RustJieba, default_segmenter
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words

PARTS = """
使用语言模型 ， 。 T恤 word don't 3.14 1,000 e\u0301 👨\u200d👩\u200d👧 👍🏽 🇨🇳 🇫 1️⃣
שלום مرحبا हिन्दी สวัสดี カナ かな 한국어
"""
INVISIBLE = [" ", "\u3000", "\n", "\u200b", "\u200d", "\ufe0f", "\0"]
MIXED = st.lists(st.sampled_from(PARTS.split() + INVISIBLE) | st.text(max_size=3), max_size=20).map("".join)


def words(text: str, annotator: Words | None = None) -> list[str]:
    spans = (annotator or Words())(Document("d", text)).char_spans[UnitKind.WORD].spans
    return [text[start:end] for start, end in zip(spans.start, spans.end, strict=True)]


@pytest.mark.parametrize(
    "expected",
    [
        ["使用", "语言", "模型", "来", "预测", "下", "一个", "词", "的", "概率"],
        ["今天", "用", "Python", "写", "代码", "。"],
        ["我", "爱", "T恤", "，", "真的", "！"],
        ["👨\u200d👩\u200d👧", "👍🏽", "🇨🇳", "🇫🇷", "❤️"],
        ["カタカナ", "ひらがな", "，", "한국어"],
    ],
)
def test_scripts_without_spaces(expected: list[str]) -> None:
    assert words("".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["It", "isn't", "rock’n’roll", "!"],
        ["1,000.50", "$", "3.14", "x", "=", "y"],
        ["cafe\u0301", "naïve", "Zürich"],
        ["שלום", "عالم", "मराठी", "می\u200cخواهم"],
        ["tail", "'", "quote", "'", "1", ".", "a", ",", "b"],
        ["🇨🇳", "🇫🇷"],
    ],
)
def test_scripts_with_spaces(expected: list[str]) -> None:
    assert words(" ".join(expected)) == expected


@given(MIXED)
def test_every_visible_character_is_in_exactly_one_word_and_no_word_holds_white_space(text: str) -> None:
    found = words(text)
    assert not any(character.isspace() for word in found for character in word)
    invisible = {c for c in text if c.isspace() or c == "\u200b" or unicodedata.category(c) == "Cc"}
    assert "".join(found) == "".join(c for c in text if c not in invisible)


@given(MIXED)
def test_no_word_crosses_a_sentence_border(text: str) -> None:
    document = Words()(Sentences(max_chars=7)(Document("d", text)))
    sentences = document.char_spans[UnitKind.SENTENCE].spans
    words = document.char_spans[UnitKind.WORD].spans
    for start, end in zip(words.start, words.end, strict=True):
        assert ((sentences.start <= start) & (end <= sentences.end)).sum() == 1


@given(MIXED)
def test_a_mark_is_never_parted_from_what_it_stands_on(text: str) -> None:
    for word in words(text):
        if unicodedata.category(word[0]) in ("Mn", "Me"):
            place = text.index(word)
            assert place == 0 or not text[place - 1].isalnum()


def test_user_words_are_kept_whole_and_named_in_the_description() -> None:
    plain, own = Words(RustJieba()), Words(RustJieba((UserWord("语言模型"), UserWord("C++语言", 100, "nz"))))
    assert words("语言模型", plain) == ["语言", "模型"]
    assert words("语言模型很大", own)[0] == "语言模型"
    assert plain.describe() != own.describe()
    assert plain.describe() == Words(RustJieba()).describe()


def test_jieba_gives_the_same_cuts_and_describes_itself_otherwise() -> None:
    text = "使用语言模型来预测下一个词的概率，张伟在北京大学学习。"
    assert PythonJieba().cut(text) == RustJieba().cut(text)
    assert Words(PythonJieba()).describe() != Words(RustJieba()).describe()
    assert ("北京大学", "nt") in PythonJieba().tag(text)


@dataclass(frozen=True)
class Characters:
    """The few lines that a segmenter of one's own needs."""

    name: str = "characters"
    version: str = "1"

    def cut(self, text: str) -> list[str]:
        return list(text)


def test_a_segmenter_of_ones_own_is_a_few_lines() -> None:
    assert words("语言 model", Words(Characters())) == ["语", "言", "model"]


def test_a_segmenter_that_loses_characters_is_refused() -> None:
    @dataclass(frozen=True)
    class Stripping(Characters):
        def cut(self, text: str) -> list[str]:
            return text.split()

    with pytest.raises(RecipeError, match="joined, must be the text"):
        Words(Stripping())(Document("d", "语言 模型"))


def test_a_segmenter_with_user_words_travels_to_another_process() -> None:
    annotator = Words(default_segmenter((UserWord("语言模型"),)))
    assert words("语言模型", deepcopy(annotator)) == ["语言模型"]  # the way it is sent: rebuilt from its words


def test_dictionary_files(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("\ufeff# mine\n云计算 500 n\n\n大模型\n张三 nr\n量子 7\n", encoding="utf-8")
    assert read_words(path) == (
        UserWord("云计算", 500, "n"),
        UserWord("大模型"),
        UserWord("张三", None, "nr"),
        UserWord("量子", 7),
    )
    path.write_text("New York\tplace\n北京\tcity\nplain\n北京\tlater\n", encoding="utf-8")
    assert read_terms(path) == (TermEntry("New York", "place"), TermEntry("北京", "city"), TermEntry("plain", "term"))


@pytest.mark.parametrize("line", ["云计算 0 n", "云 many 5", "a 1 n x"])
def test_a_bad_dictionary_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(f"好\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"words\.txt:2"):
        read_words(path)


def test_unreadable_dictionaries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such file: .*none\.txt\.$"):
        read_words(tmp_path / "none.txt")
    (tmp_path / "bad.txt").write_bytes(b"ok\n\xff\n")
    with pytest.raises(InputError, match=r"bad\.txt:2: the dictionary must be UTF-8"):
        read_terms(tmp_path / "bad.txt")
    (tmp_path / "tab.txt").write_text("a\tb\tc\n")
    with pytest.raises(InputError, match=r"tab\.txt:1"):
        read_terms(tmp_path / "tab.txt")
