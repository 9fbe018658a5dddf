"""Domain words: one token each, old ids untouched, and the old pieces known."""

from __future__ import annotations

import json

import pytest

from unmask.core.errors import InputError
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.extend import extend_tokenizer, old_pieces_of_new_ids
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import add_entries

WORDS = ("covid", "covidien", "Blockchain", "犇", "covid-19", "犇猋", "machine learning")


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.pipeline.encode(text, add_special_tokens=False).ids


def test_old_ids_stay_and_new_ones_follow(tokenizer):
    made = extend_tokenizer(tokenizer, WORDS)
    old, new = tokenizer.pipeline.get_vocab(), made.tokenizer.pipeline.get_vocab()
    assert {name: new[name] for name in old} == old
    assert sorted(made.old_pieces) == list(range(tokenizer.vocab.size, made.tokenizer.vocab.size))
    assert made.tokenizer.digest != tokenizer.digest


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_one_token_inside_text(tokenizer, word):
    made = extend_tokenizer(tokenizer, WORDS).tokenizer
    before, after = ids(made, "the dog"), ids(made, f"the dog {word}")
    fresh = [number for number in after[len(before) :] if number >= tokenizer.vocab.size]
    assert after[: len(before)] == before
    assert len(fresh) == 1
    shown = made.ids_to_tokens(fresh)[0]
    assert shown.strip(" ▁").lower() == word.lower()


def test_new_words_are_ordinary_text(tokenizer):
    made = extend_tokenizer(tokenizer, WORDS)
    assert set(made.old_pieces) <= set(made.tokenizer.vocab.ordinary.tolist())


def test_old_text_without_the_words_reads_as_before(tokenizer, corpus):
    made = extend_tokenizer(tokenizer, WORDS).tokenizer
    for text in corpus:
        assert ids(made, text) == ids(tokenizer, text)


def test_pieces_are_what_the_word_was_written_with(tokenizers):
    tokenizer = tokenizers["uncased"]
    made = extend_tokenizer(tokenizer, ["predicting", "预测"])
    assert list(made.old_pieces.values()) == [tuple(ids(tokenizer, "predicting")), tuple(ids(tokenizer, "预测"))]


def test_words_that_exist_change_nothing(tokenizers):
    assert extend_tokenizer(tokenizers["uncased"], ["the", "dog"]).tokenizer.digest == tokenizers["uncased"].digest


def test_each_word_costs_one_entry(tokenizer):
    assert len(extend_tokenizer(tokenizer, WORDS).old_pieces) == len(WORDS)


def test_extended_tokenizers_encode_documents_right(tokenizer):
    made = extend_tokenizer(tokenizer, WORDS).tokenizer
    text = "the covid dog, Blockchain 语言犇猋 machine learning covid-19"
    assert Encoder(made).encode_text(text).ids.tolist() == ids(made, text)


def test_tokens_that_live_outside_the_model_keep_their_ids(tokenizers):
    tokenizer = tokenizers["uncased"]
    tokenizer = Tokenizer.parse(tokenizer.pipeline.to_str())
    tokenizer.pipeline.add_special_tokens(["<extra_id_0>"])
    made = extend_tokenizer(tokenizer, ["covid"]).tokenizer
    assert made.pipeline.token_to_id("<extra_id_0>") == tokenizers["uncased"].vocab.size
    assert made.pipeline.token_to_id("covid") == tokenizers["uncased"].vocab.size + 1


def test_gaps_and_empty_words_are_refused(tokenizers):
    with pytest.raises(InputError, match="one of them is empty"):
        extend_tokenizer(tokenizers["uncased"], ["word", " "])
    content = tokenizers["uncased"].content()
    content["model"]["vocab"]["far"] = 10_000
    with pytest.raises(InputError, match="gaps"):
        extend_tokenizer(Tokenizer.parse(json.dumps(content)), ["covid"])


def test_entries_are_appended_to_both_kinds_of_vocabulary():
    table, pairs = {"vocab": {"a": 0}}, {"vocab": [["a", 0.0]]}
    assert add_entries(table, ["b", "c"]) == add_entries(pairs, ["b", "c"], -1.0) == 1
    assert table["vocab"] == {"a": 0, "b": 1, "c": 2}
    assert pairs["vocab"][1:] == [["b", -1.0], ["c", -1.0]]


def test_the_pieces_are_found_again_from_the_two_tokenizers(tokenizer):
    made = extend_tokenizer(tokenizer, WORDS)
    saved = Tokenizer.parse(made.tokenizer.pipeline.to_str(pretty=True))
    assert dict(old_pieces_of_new_ids(tokenizer, saved)) == dict(made.old_pieces)
    twice = extend_tokenizer(made.tokenizer, ["zebras", "猋犇"])
    assert dict(old_pieces_of_new_ids(made.tokenizer, twice.tokenizer)) == dict(twice.old_pieces)
    assert not old_pieces_of_new_ids(tokenizer, tokenizer)


def test_a_tokenizer_that_is_no_extension_is_refused(tokenizers):
    old = tokenizers["uncased"]
    longer = extend_tokenizer(old, WORDS).tokenizer
    with pytest.raises(InputError, match=rf"id {old.vocab.size} was 'covid' and is missing now"):
        old_pieces_of_new_ids(longer, old)
    content = old.content()
    vocab = content["model"]["vocab"]
    vocab["the"], vocab["dog"] = vocab["dog"], vocab["the"]
    with pytest.raises(InputError, match=rf"id {min(vocab['the'], vocab['dog'])} was '(the|dog)' and is '(the|dog)'"):
        old_pieces_of_new_ids(old, Tokenizer.parse(json.dumps(content)))
    content = old.content()
    content["normalizer"]["lowercase"] = not content["normalizer"]["lowercase"]
    with pytest.raises(InputError, match=r"other rules \(normalizer\)"):
        old_pieces_of_new_ids(old, Tokenizer.parse(json.dumps(content)))
