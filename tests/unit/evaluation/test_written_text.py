"""Written text against sacrebleu and rouge-score, and characters by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from unmask.evaluation.metrics.generation import (
    bleu,
    chrf,
    generation_baseline,
    generation_metrics,
    rouge_l,
    rouge_n,
    rouge_units,
)

WORDS = [
    "The",
    "the",
    "cat,",
    "sat",
    "on",
    "a",
    "mat.",
    "Don't",
    "U.S.",
    "well-known",
    "3,000",
    "dogs",
    "café",
    "—",
    "(ran)",
    "away!",
    "_x_",
    "ﬁne",
]


def sentences(draw: np.random.Generator, count: int, shortest: int = 0) -> list[str]:
    return [" ".join(WORDS[i] for i in draw.integers(0, len(WORDS), draw.integers(shortest, 14))) for _ in range(count)]


def test_english_as_sacrebleu():
    draw = np.random.default_rng(12)
    first, second, said = sentences(draw, 40, 1), sentences(draw, 40, 1), sentences(draw, 40)
    references = list(zip(first, second, strict=True))
    assert bleu(references, said) * 100 == pytest.approx(sacrebleu.corpus_bleu(said, [first, second]).score)
    assert chrf(references, said) * 100 == pytest.approx(sacrebleu.corpus_chrf(said, [first, second]).score)


def test_chinese_is_cut_by_its_own_rules():
    truth, said = ["今天天气很好，我们去北京。", "他说GPT很有用。"], ["今天天气好，我们去上海。", "他说GPT没有用。"]
    expected = sacrebleu.corpus_bleu(said, [truth], tokenize="zh").score
    assert expected > 20  # one word a sentence would give nothing
    assert bleu([[each] for each in truth], said) * 100 == pytest.approx(expected)


def test_rows_may_have_different_numbers_of_references():
    references, said = [["the black cat sat down"], ["a dog", "the old dog ran off"]], ["x", "the old dog ran off"]
    both = sacrebleu.corpus_bleu(said, [["the black cat sat down", "a dog"], [None, "the old dog ran off"]])
    assert bleu(references, said) * 100 == pytest.approx(both.score)
    spread = sacrebleu.corpus_chrf(said, [["the black cat sat down", "a dog"], [None, "the old dog ran off"]])
    assert chrf(references, said) * 100 == pytest.approx(spread.score)
    assert generation_metrics(references, said)["rouge_l"] == 0.5


def test_english_as_rouge_score():
    draw = np.random.default_rng(13)
    peer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    for truth, said in zip(sentences(draw, 500), sentences(draw, 500), strict=True):
        theirs = peer.score(truth, said)
        ours, other = rouge_units(said), rouge_units(truth)
        assert rouge_n(other, ours, 1) == pytest.approx(theirs["rouge1"].fmeasure)
        assert rouge_n(other, ours, 2) == pytest.approx(theirs["rouge2"].fmeasure)
        assert rouge_l(other, ours) == pytest.approx(theirs["rougeL"].fmeasure)


def test_several_references_as_rouge_score():
    peer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    references, said = ["the cat sat", "on the mat it sat"], "the mat sat on it"
    theirs = peer.score_multi(references, said)
    scores = generation_metrics([references], [said])
    assert scores["rouge_1"] == pytest.approx(theirs["rouge1"].fmeasure)
    assert scores["rouge_2"] == pytest.approx(theirs["rouge2"].fmeasure)
    assert scores["rouge_l"] == pytest.approx(theirs["rougeL"].fmeasure)


def test_characters_and_words_of_mixed_text():
    assert rouge_units("我用GPT-2，真好！１９９８年") == ["我", "用", "gpt", "2", "真", "好", "1998", "年"]
    assert rouge_units("") == rouge_units("，。！") == []


def test_characters_by_hand():
    scores = generation_metrics([["今天天气好"]], ["天气今天好"])
    assert scores["rouge_1"] == 1
    assert scores["rouge_2"] == pytest.approx(2 / 4)  # 今天, 天气
    assert scores["rouge_l"] == pytest.approx(3 / 5)  # 天气好


def test_nothing_written_scores_nothing():
    scores = generation_metrics([["the cat sat"]], [""])
    assert set(scores.values()) == {0.0}


def test_the_baseline_copies():
    assert generation_baseline([["学而时习之"]], ["学而时习之"]) == pytest.approx(
        {"bleu": 1, "chrf": 1, "rouge_1": 1, "rouge_2": 1, "rouge_l": 1}
    )
