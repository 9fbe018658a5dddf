"""Rows of tokens: as the tokenizers library frames and cuts them, and never longer than they may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from little_task import BAD, GOOD, little_tokenizer
from tokenizers import Tokenizer as Pipeline
from tokenizers.processors import TemplateProcessing

from unmask.core.errors import InputError
from unmask.finetuning.data.encode import LengthLimits, encode_texts, truncate_pair

TOKENIZER = little_tokenizer()


def theirs(length: int) -> Pipeline:
    """The same tokenizer, with BERT's template and cutting as the library does both."""
    pipeline, vocab = Pipeline.from_str(TOKENIZER.pipeline.to_str()), TOKENIZER.vocab
    pipeline.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab.cls), ("[SEP]", vocab.sep)],
    )
    pipeline.enable_truncation(length, strategy="longest_first")
    return pipeline


TEXT = st.lists(st.sampled_from([*GOOD, *BAD, "7"]), max_size=4).map(" ".join)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.integers(7, 40), st.booleans())
def test_rows_equal_those_of_the_library(pairs, length, paired):
    texts = pairs if paired else [pair[:1] for pair in pairs]
    rows = encode_texts(texts, TOKENIZER, LengthLimits(length))
    whole = encode_texts(texts, TOKENIZER, LengthLimits(1000))
    assert rows.num_truncated == int((whole.lengths > length).sum())
    for number, text in enumerate(texts):
        expected = theirs(length).encode(*text)
        inputs = rows.take(np.array([number]))
        assert inputs.ids.tolist() == expected.ids
        assert inputs.segment.tolist() == expected.type_ids
        assert inputs.position.tolist() == list(range(len(expected.ids)))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1), st.integers(2, 40))
def test_the_longer_text_gives_way(lengths, room):
    kept = truncate_pair(np.array(lengths), room)
    for (a, b), (c, d) in zip(lengths, kept.tolist(), strict=True):
        while a + b > room:
            a, b = (a - 1, b) if a > b else (a, b - 1)
        assert c + d == a + b
        assert abs(c - a) <= 1  # of two equally long texts, either may lose the odd token


def test_rows_are_taken_in_any_order():
    rows = encode_texts([(text,) for text in (*GOOD, *BAD)], TOKENIZER, LengthLimits(16))
    inputs = rows.take(np.array([4, 0]))
    first, second = rows.take(np.array([4])), rows.take(np.array([0]))
    assert inputs.ids.tolist() == [*first.ids.tolist(), *second.ids.tolist()]
    assert inputs.rows.tolist() == [0, len(first.ids), len(first.ids) + len(second.ids)]


def test_a_special_token_in_a_text_is_text():
    rows = encode_texts([("[MASK] [SEP]",)], TOKENIZER, LengthLimits(16))
    assert TOKENIZER.vocab.mask not in rows.ids
    assert (rows.ids == TOKENIZER.vocab.sep).sum() == 1


def test_a_network_with_one_segment_is_shown_no_second():
    assert encode_texts([GOOD[:2]], TOKENIZER, LengthLimits(32, num_segments=1)).segment.max() == 0
    assert encode_texts([GOOD[:2]], TOKENIZER, LengthLimits(32, num_segments=2)).segment.max() == 1


def test_what_has_no_room_or_is_no_text_is_refused():
    with pytest.raises(InputError, match="too short for 2 texts"):
        encode_texts([GOOD[:2]], TOKENIZER, LengthLimits(4))
    with pytest.raises(InputError, match=r"a\.jsonl:2: the text holds half of a surrogate pair"):
        encode_texts([("fine",), ("\ud800",)], TOKENIZER, LengthLimits(16), where=["a.jsonl:1", "a.jsonl:2"])
