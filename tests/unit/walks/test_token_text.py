"""Tokens in readable form: byte-level pieces are shown as bytes wherever they are no whole characters."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.walks.describe import token_texts
from unmask.walks.toy_vocab import toy_tokenizer

TEXTS = ["the model reads the text", "模型会读文字"] * 5


@pytest.fixture(scope="module")
def byte_level():
    return train_tokenizer(ByteBPE(size=300), TEXTS)


def shown(tokenizer, text):
    return token_texts(tokenizer)(Encoder(tokenizer).encode_text(text).ids)


def test_parts_of_characters_are_shown_as_their_bytes(byte_level):
    assert shown(byte_level, "爱😀") == ["<E7>", "<88>", "<B1>", "<F0>", "<9F>", "<98>", "<80>"]
    assert "模" in "".join(shown(byte_level, "模型"))
    assert token_texts(byte_level)([byte_level.vocab.cls, byte_level.vocab.mask]) == ["<s>", "<mask>"]


def test_blank_tokens_can_be_seen(byte_level):
    assert shown(byte_level, "q \n\tq") == ["q", "<20>", "<0A>", "<09>", "q"]
    assert " the" in shown(byte_level, "reads the")


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=20))
def test_the_bytes_of_a_text_come_back(byte_level, text):
    pieces = shown(byte_level, text)
    assert not any("\ufffd" in piece for piece in pieces) or "\ufffd" in text
    raw = re.split("<([0-9A-F]{2})>", "".join(pieces))
    told = b"".join(bytes.fromhex(part) if number % 2 else part.encode() for number, part in enumerate(raw))
    assert told == text.encode()


def test_other_vocabularies_are_shown_as_they_are_written():
    tokenizer = toy_tokenizer(["an estimation"])
    assert shown(tokenizer, "an estimation") == ["an", "estim", "##ation"]
