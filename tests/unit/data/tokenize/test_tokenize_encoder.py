"""Cutting and remembering must never show: the encoder against encoding each text whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Pipeline

from unmask.core.errors import InputError
from unmask.core.records import CharSpans, Document, Spans, UnitKind
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.safe_splits import SafeSplit, safe_split_for
from unmask.data.tokenize.tokenizer import Tokenizer

PIECES = (
    *("语言模型", "今天", "，", "。", "の", "한국", "ᄒ", "ᅡ", "ᆫ", "々", "豈", "𠀀", "〇", "Ａ", "ﬁ", "½", "㎏", "①"),
    *(
        "the",
        "The",
        "dog",
        "doesn't",
        "'s",
        "'",
        "'ll",
        "words",
        "GPT-4",
        "3.14",
        "naïve",
        "İ",
        "ẞ",
        "ς",
        "ǅ",
        "≠",
        "¨",
    ),
    *("שלום", "مرحبا", "\u200f", "\u202e", "😀", "👍🏽", "👩‍👩‍👧", "\ufe0f", "\u200d", "❤", "🇨🇳"),
    *("\u0301", "\u0323", "\u0338", "\u302e", "\u3099", "\U0001d15e", "\U0001d165", "\U0001d16d", "e\u0301", "!\u0301"),
    *("\x00", "\x07", "\x1c", "\x1f", "\x7f", "\x85", "\u00ad", "\ufeff", "\ufffd", "\uffff", "\ue000", "\u0378"),
    *(
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u3000",
        "\u00a0",
        "\u2003",
        "\u2028",
        "\u200b",
        "\u180e",
        "▁",
        "##",
        "_",
        "@",
        "−",
    ),
    *("[MASK]", "<mask>", "[UNK]", "<unk>", "<s>", "</s>", "[PAD]", "<pad>", "<extra_id_0>", "[", "<", ">"),
)
# Characters from everywhere, and the ones above far more often than chance would have it.
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.characters(exclude_categories=["Cs"])), max_size=24).map("".join)
EVERYWHERE = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="session")
def warm(tokenizers) -> dict[str, Encoder]:
    return {tokenizer.digest: Encoder(tokenizer) for tokenizer in tokenizers.values()}


@pytest.fixture(scope="session")
def whole(tokenizers) -> dict[str, Encoder]:
    return {tokenizer.digest: whole_text_encoder(tokenizer) for tokenizer in tokenizers.values()}


def whole_text_encoder(tokenizer: Tokenizer) -> Encoder:
    encoder = Encoder(tokenizer)
    encoder._safe_split = SafeSplit.NOWHERE
    return encoder


@given(text=TEXTS)
@example(text="\u302e\x00\u093c")  # a removed character between two marks that change places
@EVERYWHERE
def test_cached_equals_whole(tokenizer, warm, whole, text):
    digest = tokenizer.digest
    tokens, expected = warm[digest].encode_text(text), whole[digest].encode_text(text)
    assert tokens.ids.tolist() == expected.ids.tolist()
    assert tokens.starts.tolist() == expected.starts.tolist()
    assert tokens.ends.tolist() == expected.ends.tolist()


@given(text=TEXTS)
@EVERYWHERE
def test_ids_are_those_of_the_tokenizer_and_spans_lie_in_order(tokenizer, warm, text):
    text = text.replace("<", "").replace("[", "")  # nothing that looks like a special token
    tokens = warm[tokenizer.digest].encode_text(text)
    assert tokens.ids.tolist() == tokenizer.pipeline.encode(text, add_special_tokens=False).ids
    assert (np.diff(tokens.starts) >= 0).all()
    assert (np.diff(tokens.ends) >= 0).all()
    assert all(text[a:b] == text[a:b].strip() for a, b in zip(tokens.starts, tokens.ends, strict=True))


@given(text=TEXTS)
@EVERYWHERE
def test_text_never_becomes_a_special_id(tokenizer, warm, text):
    vocab = tokenizer.vocab
    special = {vocab.cls, vocab.sep, vocab.mask, vocab.pad, *vocab.sentinels.tolist()}
    assert not special & set(warm[tokenizer.digest].encode_text(text).ids.tolist())


def test_literal_special_tokens_are_spelled_out(tokenizer, warm):
    encoder = warm[tokenizer.digest]
    for name in tokenizer.special_tokens:
        ids = encoder.encode_text(f"the {name} dog").ids.tolist()
        assert tokenizer.pipeline.token_to_id(name) not in set(ids) - {tokenizer.vocab.unk}
        assert len(ids) > len(encoder.encode_text("the x dog").ids)


@given(texts=st.lists(TEXTS, max_size=6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_full_table_changes_nothing(tokenizer, warm, texts):
    small = Encoder(tokenizer, capacity=2)
    for text in texts:
        for ours, theirs in zip(small.encode_text(text), warm[tokenizer.digest].encode_text(text), strict=True):
            assert ours.tolist() == theirs.tolist()


def test_the_table_stays_bounded(tokenizers):
    encoder = Encoder(tokenizers["uncased"], capacity=50)
    for number in range(400):
        encoder.encode_text(f"word{number} " + "x" * 500 + str(number))
    assert len(encoder._chunks) <= 60
    assert all(len(chunk) <= 64 for chunk in encoder._row_of_chunk)


def test_every_family_has_its_own_cut(tokenizers):
    cuts = {name: safe_split_for(tokenizer.content()) for name, tokenizer in tokenizers.items()}
    assert cuts == {
        "uncased": SafeSplit.AROUND_SEPARATORS,
        "cased": SafeSplit.AROUND_SEPARATORS,
        "characters": SafeSplit.AROUND_SEPARATORS,
        "folded characters": SafeSplit.AROUND_SEPARATORS,
        "unigram": SafeSplit.AROUND_DROPPED,
        "bytes": SafeSplit.BEFORE_SPACES,
    }


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("normalizer", {"type": "Strip", "strip_left": True, "strip_right": True}),
        ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}),
    ],
)
def test_an_unknown_pipeline_is_cut_nowhere_and_still_right(tokenizers, part, value):
    content = {**tokenizers["cased"].content(), part: value}
    assert safe_split_for(content) is SafeSplit.NOWHERE
    other = Tokenizer.parse(json.dumps(content))
    text = " The dog!! 语言模型 "
    assert Encoder(other).encode_text(text).ids.tolist() == other.pipeline.encode(text, add_special_tokens=False).ids


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
PREFIXED = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


@pytest.mark.parametrize(("name", "before"), [("unigram", METASPACE), ("bytes", PREFIXED)])
@given(text=TEXTS)
@EVERYWHERE
def test_pipelines_that_treat_the_first_word_apart(tokenizers, name, before, text):
    content = {**tokenizers[name].content(), "pre_tokenizer": before, "added_tokens": []}
    assert safe_split_for(content) is SafeSplit.BEFORE_SPACES
    pipeline = Pipeline.from_str(json.dumps(content))
    text = text.replace("<", "").replace("[", "")
    encoder = Encoder(Tokenizer(pipeline, tokenizers[name].special_tokens))
    assert encoder.encode_text(text).ids.tolist() == pipeline.encode(text, add_special_tokens=False).ids


def test_a_document_becomes_tokens_with_units(tokenizers):
    text = "Naïve ＢＥＲＴ 预测概率"
    marks = {
        UnitKind.WORD: CharSpans(Spans.of((0, 5), (6, 10), (11, 13), (13, 15))),
        UnitKind.ENTITY: CharSpans(Spans.of((7, 8)), ("Q57267388",)),
        UnitKind.SENTENCE: CharSpans(Spans.of((0, 11), (11, 15))),
    }
    for name, tokenizer in tokenizers.items():
        made = Encoder(tokenizer)(Document("d", text, marks))
        assert len(made.units.spans(UnitKind.WORD)) == 4, name
        assert len(made.units.spans(UnitKind.SENTENCE)) == 2, name
        entity, word = made.units.spans(UnitKind.ENTITY), made.units.spans(UnitKind.WORD)
        assert (entity.start[0], entity.end[0]) == (word.start[1], word.end[1]), name
        assert made.labels[UnitKind.ENTITY] == ("Q57267388",), name
        assert made.ids.dtype == np.int32


def test_an_empty_document_has_no_tokens(tokenizer):
    made = Encoder(tokenizer)(Document("d", ""))
    assert len(made.ids) == 0


def test_half_a_surrogate_pair_is_refused_by_name(tokenizers):
    with pytest.raises(InputError, match="document d7"):
        Encoder(tokenizers["uncased"])(Document("d7", "a\ud800b"))
