"""Sentences of Chinese, English and mixed text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import Document, UnitKind
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words

PARTS = """
。 ！ ？ . ... …… ?! ” “ " ' ) 。” Mr U.S 3.14 中文 word The é e\u0301 👨\u200d👩 שלום
"""
MIXED = st.lists(st.sampled_from([*PARTS.split(), "\n", " ", "\u3000"]) | st.text(max_size=3)).map("".join)


def sentences(text: str, longest: int = 1000) -> list[str]:
    spans = Sentences(longest)(Document("d", text)).char_spans[UnitKind.SENTENCE].spans
    return [text[start:end] for start, end in zip(spans.start, spans.end, strict=True)]


@pytest.mark.parametrize(
    "expected",
    [
        ["他走了。", "她来了！", "真的吗？", "好"],
        ["他说：“你好！”", "她笑了。"],
        ["“真的吗？”，他问。", "（没有人知道。）", "完。"],
        ["他走了……", "她也走了...", "然后呢?", "不知道!"],
        ["什么？！", "不会吧！！！", "是。"],
        ["圆周率是3.14。", "第1.2节。"],
        ["今天用Python 3.11写代码.", "明天见。"],
        ["他说。", '"你好。"', "她走了。"],
    ],
)
def test_chinese(expected: list[str]) -> None:
    assert sentences("".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith met Mr. J. K. Jones.", "They talked."],
        ["It costs $3.14 in the U.S. market.", "He left at 5 p.m.", "The shop closed."],
        ["See Fig. 3 and No. 28.", "I said no.", "Then I left."],
        ["Some fruit, e.g. apples, i.e. food, etc. is here.", "Good."],
        ['"Stop!" he said.', '"Go."', "She went."],
        ["Wait... what?!", "Yes!", "(Really.)", "Fine."],
        ["Visit www.example.com or mail a.b@c.org.", "Thanks."],
        ["1. Introduction comes first.", "2. Methods follow."],
        ["He is (I think.) here.", "OK."],
        ["Made by Acme Inc. in May.", "Sold."],
        ["It starred N. T. Rao and J. A. Smith.", "It won."],
    ],
)
def test_english(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


def test_line_ends_end_sentences_and_white_space_is_left_out() -> None:
    assert sentences("  标题\n\n 没有标点 \r\nno point\n") == ["标题", "没有标点", "no point"]


def test_a_stretch_without_marks_is_cut_at_commas_then_spaces_then_anywhere() -> None:
    assert sentences("aaaa，bbbb，cccc，dddd", 12) == ["aaaa，bbbb，", "cccc，dddd"]
    assert sentences("aaaa bbbb cccc dddd", 12) == ["aaaa bbbb", "cccc dddd"]
    assert sentences("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize("text", ["", " \n ", "\u3000"])
def test_blank_text_has_no_sentence(text: str) -> None:
    assert sentences(text) == []


@given(MIXED, st.sampled_from([5, 1000]))
def test_sentences_cover_everything_visible_and_stay_short(text: str, longest: int) -> None:
    document = Sentences(longest)(Document("d", text))
    spans = document.char_spans[UnitKind.SENTENCE].spans
    inside = [False] * len(text)
    for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
        assert end - start <= longest
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        assert "\n" not in text[start:end]
        inside[start:end] = [True] * (end - start)
    words = Words()(document).char_spans[UnitKind.WORD].spans
    assert all(inside[start] and inside[end - 1] for start, end in zip(words.start, words.end, strict=True))


def test_sentences_after_words_are_refused() -> None:
    with pytest.raises(RecipeError, match="before Words"):
        Sentences()(Words()(Document("d", "一二")))
