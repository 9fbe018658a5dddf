"""Filling: what is said at each mask, and what cannot be filled."""

import pytest
import torch
from small_net import TEXTS, small_model, small_tokenizer

from unmask.core.errors import InputError
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.inference.fill_mask import fill_masks
from unmask.inference.pack_texts import pack


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def test_each_mask_gets_the_likeliest_tokens_of_its_own_place(tokenizer):
    model = small_model(tokenizer.vocab.size)
    texts = ["今天天气真[MASK]", "the [MASK] fox [MASK] over"]
    filled = list(fill_masks(model, tokenizer, texts, top_k=3))
    assert [one.text for one in filled] == texts
    assert [len(one.candidates) for one in filled] == [1, 2]
    row = tokenizer.pipeline.encode(texts[1]).ids
    with torch.no_grad():
        logits = model.lm_head(model.network(pack([row])).last_TD)
    places = [place for place, number in enumerate(row) if number == tokenizer.vocab.mask]
    for guesses, place in zip(filled[1].candidates, places, strict=True):
        chances, ids = logits[place].softmax(-1).topk(3)
        assert [guess.id for guess in guesses] == ids.tolist()
        assert [guess.probability for guess in guesses] == pytest.approx(chances.tolist(), rel=1e-4)
        assert [guess.token for guess in guesses] == tokenizer.ids_to_tokens(ids.tolist())


def test_a_text_is_answered_alike_alone_and_among_many(tokenizer):
    model = small_model()
    texts = [f"the fox {'jumps ' * (number % 7)}[MASK]" for number in range(70)]
    together = list(fill_masks(model, tokenizer, texts, top_k=2))
    for number in (0, 31, 32, 69):
        (alone,) = fill_masks(model, tokenizer, [texts[number]], top_k=2)
        assert [g.id for g in alone.candidates[0]] == [g.id for g in together[number].candidates[0]]


def test_rows_without_a_name_are_passed_over(tokenizer):
    model = small_model(vocabulary=400)
    (filled,) = fill_masks(model, tokenizer, ["the [MASK]"], top_k=1000)
    assert len(filled.candidates[0]) == tokenizer.vocab.size
    assert sum(guess.probability for guess in filled.candidates[0]) < 1


def test_the_usual_mask_is_understood_by_a_tokenizer_with_another():
    tokenizer = train_tokenizer(ByteBPE(300), TEXTS)
    assert tokenizer.special_tokens.mask == "<mask>"
    model = small_model(tokenizer.vocab.size)
    usual, own = fill_masks(model, tokenizer, ["the [MASK] dog", "the <mask> dog"])
    assert usual.candidates == own.candidates


def test_what_cannot_be_filled_is_told(tokenizer):
    with pytest.raises(InputError, match=r"nothing to fill in 'no hole'\. Write \[MASK\]"):
        list(fill_masks(small_model(), tokenizer, ["no hole"]))
    with pytest.raises(InputError, match=r"has 33 tokens with \[CLS\] and \[SEP\].*reads 24 at most"):
        list(fill_masks(small_model(), tokenizer, ["天" * 30 + "[MASK]"]))
    with pytest.raises(InputError, match="no LM head"):
        list(fill_masks(small_model(tokens=False), tokenizer, ["the [MASK]"]))
