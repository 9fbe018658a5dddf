"""The toy vocabulary: nothing in a text is unknown to it, and its similar words are symmetric and of equal length."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.walks.toy_vocab import (
    CASED,
    OTHER_CHINESE,
    OTHER_ENGLISH,
    ListedVocabulary,
    other_toy_document,
    similar_words,
    toy_tokenizer,
    toy_vocab,
)

CAFE = ["The", "Café"]


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn"]), max_size=40),
    spelling=st.sampled_from([CASED, ListedVocabulary.like(WordPiece())]),
)
def test_no_token_is_unknown(text, spelling):
    tokenizer = toy_tokenizer([text], spelling)
    assert tokenizer.vocab.unk not in Encoder(tokenizer).encode_text(text).ids


def test_case_and_accents_are_folded_as_the_vocabulary_of_a_member_folds_them():
    for spec, pieces in ((WordPiece(), ["the", "cafe"]), (WordPiece(lowercase=False, strip_accents=False), CAFE)):
        tokenizer = toy_tokenizer(["The Café"], ListedVocabulary.like(spec))
        assert tokenizer.ids_to_tokens(Encoder(tokenizer).encode_text("The Café").ids) == pieces
    assert ListedVocabulary.like(Characters(lowercase=True)).lowercase
    assert ListedVocabulary.like(ByteBPE()) == CASED


def test_english_words_fall_into_pieces_and_never_get_lost():
    text = "estimation estimates estimated estimating unbelievable probability words the"
    tokenizer = toy_tokenizer([text])
    tokens = tokenizer.ids_to_tokens(Encoder(tokenizer).encode_text(text).ids)
    assert "".join(tokens).replace("##", "") == text.replace(" ", "")
    assert [token for token in tokens if "prob" in token or "ability" in token] == ["prob", "##ability"]


@pytest.mark.parametrize("text", ["使用语言模型", "a language model"])
def test_the_table_knows_its_words(text):
    tokenizer = toy_tokenizer([text])
    vocab = toy_vocab(tokenizer, [text])
    members = [word for group in similar_words([text]) for word in group.split()]
    assert len(set(members)) == len(members) == len(vocab.similar_words)
    encoder = Encoder(tokenizer)
    covered = [
        bool(vocab.similar_words.has_similar(encoder.encode_text(word).ids, np.zeros(1, np.int64))[0])
        for word in members
    ]
    assert all(covered)


def test_random_tokens_are_of_the_language_of_the_text():
    chinese = toy_tokenizer(["语言"])
    assert not any(token.isascii() for token in chinese.ids_to_tokens(chinese.vocab.ordinary))
    english = toy_tokenizer(["language"])
    assert all(token.isascii() for token in english.ids_to_tokens(english.vocab.ordinary))


def test_the_other_document_speaks_the_same_language():
    assert other_toy_document("语言 model") == OTHER_CHINESE
    assert other_toy_document("model") == OTHER_ENGLISH
