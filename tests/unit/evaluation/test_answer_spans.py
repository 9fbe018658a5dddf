"""Copied answers against the published definitions of SQuAD and CMRC, written out step by step."""

from __future__ import annotations

import collections
import re
import string

import numpy as np
import pytest
from nltk.tokenize.destructive import NLTKWordTokenizer

from unmask.evaluation.metrics.answer_match import (
    cmrc_exact_match,
    cmrc_f1,
    cmrc_units,
    squad1_f1,
    squad2_f1,
    squad_exact_match,
    squad_words,
)
from unmask.evaluation.metrics.span_qa import (
    QADefinition,
    apply_threshold,
    best_thresholds,
    qa_baseline,
    qa_definition_for,
    qa_metrics,
    score_answer,
)

CMRC_LIST = [
    "-",
    ":",
    "_",
    "*",
    "^",
    "/",
    "\\",
    "~",
    "`",
    "+",
    "=",
    "，",
    "。",
    "：",
    "？",
    "！",
    "“",
    "”",
    "；",
    "’",
    "《",
    "》",
    "……",
    "·",
    "、",
    "「",
    "」",
    "（",
    "）",
    "－",
    "～",
    "『",
    "』",
]
ENGLISH = ["the", "a", "an", "Cat", "cat.", "(cat)", "well-known", "--", "THE", "1,000", "thé", "\t", "A.", "¿"]
MIXED = [
    *"中国人，。：（）《》…—·的",
    " ",
    "GPT-2",
    "cat",
    "the ",
    "3,000",
    "1.5",
    "’",
    "'s",
    "$",
    "A.",
    "ＡＢ",
    "!",
    ",",
    '"',
]


def expected_squad_words(text: str) -> list[str]:
    text = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def squad_one(truth: str, said: str) -> tuple[float, float]:
    """Exact match and F1 as in the script of SQuAD 2.0."""
    theirs, ours = expected_squad_words(truth), expected_squad_words(said)
    same = sum((collections.Counter(theirs) & collections.Counter(ours)).values())
    if not theirs or not ours:
        return float(theirs == ours), float(theirs == ours)
    if same == 0:
        return float(theirs == ours), 0.0
    precision, recall = same / len(ours), same / len(theirs)
    return float(theirs == ours), 2 * precision * recall / (precision + recall)


def expected_cmrc_units(text: str) -> list[str]:
    units, waiting = [], ""
    for character in text.lower().strip():
        if character in CMRC_LIST:
            continue
        if re.search(r"[\u4e00-\u9fa5]", character):
            units += NLTKWordTokenizer().tokenize(waiting)
            units.append(character)
            waiting = ""
        else:
            waiting += character
    return units + NLTKWordTokenizer().tokenize(waiting)


def cmrc_one(truth: str, said: str) -> tuple[float, float]:
    """Exact match and F1 as in the script of CMRC 2018."""
    bare = [
        "".join(character for character in text.lower().strip() if character not in CMRC_LIST) for text in (truth, said)
    ]
    theirs, ours = expected_cmrc_units(truth), expected_cmrc_units(said)
    longest = 0
    for i in range(len(theirs)):
        for j in range(len(ours)):
            length = 0
            while i + length < len(theirs) and j + length < len(ours) and theirs[i + length] == ours[j + length]:
                length += 1
            longest = max(longest, length)
    if longest == 0:
        return float(bare[0] == bare[1]), 0.0
    precision, recall = longest / len(ours), longest / len(theirs)
    return float(bare[0] == bare[1]), 2 * precision * recall / (precision + recall)


def texts(draw: np.random.Generator, pieces: list[str], glue: str, count: int) -> list[str]:
    lengths = draw.integers(0, 7, count)
    return [glue.join(pieces[i] for i in draw.integers(0, len(pieces), length)) for length in lengths]


def test_random_english_answers_as_squad():
    draw = np.random.default_rng(5)
    for truth, said in zip(texts(draw, ENGLISH, " ", 2000), texts(draw, ENGLISH, " ", 2000), strict=True):
        exact, f1 = squad_one(truth, said)
        assert (squad_exact_match(truth, said), squad2_f1(truth, said)) == (exact, pytest.approx(f1))
        first = 0.0 if not squad_words(truth) else f1
        assert squad1_f1(truth, said) == pytest.approx(first)


def test_random_mixed_answers_as_cmrc():
    draw = np.random.default_rng(6)
    for truth, said in zip(texts(draw, MIXED, "", 2000), texts(draw, MIXED, "", 2000), strict=True):
        assert cmrc_units(truth) == expected_cmrc_units(truth)
        exact, f1 = cmrc_one(truth, said)
        assert (cmrc_exact_match(truth, said), cmrc_f1(truth, said)) == (exact, pytest.approx(f1))


def test_words_inside_chinese_text_are_cut_as_nltk_cuts_them():
    pieces = [
        *" .,;'\"?!()[]{}<>@#$%&«»‘„—0z",
        " ",
        "can",
        "not",
        "gonna",
        "wanna ",
        "n't",
        "'ll",
        "'tis",
        "d'ye",
        "\n",
    ]
    draw = np.random.default_rng(7)
    for text in texts(draw, pieces, "", 4000):
        assert cmrc_units(text) == NLTKWordTokenizer().tokenize(text.strip()), repr(text)


@pytest.mark.parametrize(
    ("truth", "said", "exact", "first", "second"),
    [
        ("the Cat", "cat!", 1, 1, 1),
        ("", "", 1, 0, 1),
        ("the", "a.", 1, 0, 1),  # nothing is left of either
        ("the", "cat", 0, 0, 0),
        ("...", "", 1, 0, 1),
        ("theatre", "atre", 0, 0, 0),  # an article is a word, not letters
        ("cat cat dog", "cat dog dog", 0, 2 / 3, 2 / 3),
        ("ｃａｔ", "cat", 0, 0, 0),  # full-width letters are other letters
        ("well-known", "wellknown", 1, 1, 1),
        ("cat，", "cat", 0, 0, 0),  # only ASCII punctuation goes
    ],
)
def test_edges_of_squad(truth: str, said: str, exact: float, first: float, second: float):
    assert squad_exact_match(truth, said) == exact
    assert squad1_f1(truth, said) == pytest.approx(first)
    assert squad2_f1(truth, said) == pytest.approx(second)


@pytest.mark.parametrize(
    ("truth", "said", "exact", "f1"),
    [
        ("中国，北京", "中国北京", 1, 1),
        ("", "", 1, 0),  # F1 of nothing is 0, whatever is said
        ("。", "，", 1, 0),
        ("北京", "", 0, 0),
        ("中国的北京", "中国和北京", 0, 2 * 2 / 10),  # a run of two, not four in order
        ("北京 ", "北京", 1, 1),
        ("北 京", "北京", 0, 1),  # white space counts for exact match alone
        ("GPT-2模型", "gpt2模型", 1, 1),
        ("New York市", "York市", 0, 2 * 2 / 5),
        ("１２", "12", 0, 0),  # full-width digits are other characters
        ("他说…", "他说", 0, 2 * 2 / 5),  # the single … is not on the list
        ("3,000人", "3,000,人", 0, 2 * 1 / 5),
    ],
)
def test_edges_of_cmrc(truth: str, said: str, exact: float, f1: float):
    assert cmrc_exact_match(truth, said) == exact
    assert cmrc_f1(truth, said) == pytest.approx(f1)


def test_the_best_of_several_answers_counts():
    assert score_answer(["a dog", "black cat"], "cat", QADefinition.SQUAD_1) == (0, pytest.approx(2 / 3))
    assert score_answer(["上海", "北京市"], "北京", QADefinition.CMRC) == (0, pytest.approx(4 / 5))


def test_questions_without_an_answer():
    for reading in (QADefinition.SQUAD_2, QADefinition.CMRC):
        assert score_answer([], "", reading) == (1, 1)
        assert score_answer([], "x", reading) == (0, 0)
    assert score_answer([], "。", QADefinition.CMRC) == (1, 1)
    assert score_answer(["the"], "", QADefinition.SQUAD_2) == (1, 1)  # a right answer that says nothing is none


def test_scores_come_in_parts_if_some_questions_have_no_answer():
    scores = qa_metrics([["cat"], ["dog"], []], ["cat", "", ""], QADefinition.SQUAD_2)
    assert scores == {
        "exact_match": pytest.approx(2 / 3),
        "answer_f1": pytest.approx(2 / 3),
        "has_answer_exact": 0.5,
        "has_answer_f1": 0.5,
        "no_answer_exact": 1,
        "no_answer_f1": 1,
    }
    assert set(qa_metrics([["cat"]], ["cat"], QADefinition.SQUAD_1)) == {"exact_match", "answer_f1"}
    assert qa_baseline([["cat"], ["dog"], []], QADefinition.SQUAD_2)["exact_match"] == pytest.approx(1 / 3)


def official_threshold(
    earned: list[float], said: list[str], has: list[bool], doubt: list[float]
) -> tuple[float, float]:
    """The search of SQuAD 2.0's script, question by question."""
    now = best = float(sum(not each for each in has))
    threshold = 0.0
    for i in sorted(range(len(doubt)), key=lambda i: doubt[i]):
        if has[i]:
            now += earned[i]
        elif said[i]:
            now -= 1
        if now > best:
            best, threshold = now, doubt[i]
    return threshold, best / len(earned)


def test_the_best_threshold_is_the_one_that_the_script_of_squad_finds():
    draw = np.random.default_rng(8)
    for _ in range(300):
        truths = [[] if draw.random() < 0.4 else ["black cat"] for _ in range(12)]
        said = [("black cat", "cat", "dog", "")[i] for i in draw.integers(0, 4, 12)]
        doubt = draw.integers(0, 20, 12) / 20  # with ties
        found = best_thresholds(truths, said, doubt, QADefinition.SQUAD_2)
        for which, best in ((0, found.exact), (1, found.f1)):
            earned = [
                score_answer(each, one, QADefinition.SQUAD_2)[which] for each, one in zip(truths, said, strict=True)
            ]
            expected = official_threshold(earned, said, [bool(each) for each in truths], doubt.tolist())
            assert (best.value, best.score) == (expected[0], pytest.approx(expected[1]))


def test_answers_held_back_at_the_threshold_earn_what_was_promised():
    draw = np.random.default_rng(9)
    for _ in range(200):
        truths = [[] if draw.random() < 0.6 else ["cat"] for _ in range(10)]
        said = [("cat", "dog")[i] for i in draw.integers(0, 2, 10)]
        doubt = draw.normal(size=10)  # odds, not probabilities: below 0 too
        best = best_thresholds(truths, said, doubt, QADefinition.SQUAD_2).f1
        kept = apply_threshold(said, doubt, best.value)
        assert qa_metrics(truths, kept, QADefinition.SQUAD_2)["answer_f1"] == pytest.approx(best.score)


def test_the_definition_follows_the_language_and_the_questions():
    assert qa_definition_for([["北京"], ["1998"]]) is QADefinition.CMRC
    assert qa_definition_for([["1998"]], ["香港在1997年回归。"]) is QADefinition.CMRC
    assert qa_definition_for([["Beijing (北京)"], ["New York"]]) is QADefinition.SQUAD_1
    assert qa_definition_for([["Beijing"], []]) is QADefinition.SQUAD_2
