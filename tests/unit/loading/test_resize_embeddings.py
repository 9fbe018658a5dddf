"""New rows: means of the old pieces, old rows untouched, and pieces that cannot be right refused."""

import pytest
import torch
from small_bert import small_model, small_tokenizer

from unmask.core.errors import InputError
from unmask.data.tokenize.extend import extend_tokenizer
from unmask.loading.resize_embeddings import resize_embeddings


def test_new_rows_are_the_means_of_their_pieces_and_old_rows_stay():
    model = small_model(vocabulary=10)
    with torch.no_grad():
        model.lm_head.bias.copy_(torch.arange(10.0))
    larger = resize_embeddings(model, {10: (1, 2, 2), 11: (7,)})
    old, new = model.network.embed.token.weight, larger.network.embed.token.weight
    assert larger.vocab_size == 12
    assert torch.equal(new[:10], old)
    assert torch.allclose(new[10], (old[1] + 2 * old[2]) / 3)
    assert torch.equal(new[11], old[7])
    assert larger.lm_head.bias[10:].tolist() == pytest.approx([5 / 3, 7.0])
    assert larger.lm_head.token is larger.network.embed.token


def test_everything_else_is_the_same():
    model = small_model(vocabulary=10)
    larger = resize_embeddings(model, {10: (1,)}).state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(larger[name][: len(tensor)], tensor), name


def test_rows_that_were_kept_free_are_used_first():
    model = small_model(vocabulary=16)
    larger = resize_embeddings(model, {12: (3, 4), 13: (5,)})
    assert larger.vocab_size == 16
    assert torch.equal(larger.network.embed.token.weight[13], model.network.embed.token.weight[5])
    assert torch.equal(larger.network.embed.token.weight[14], model.network.embed.token.weight[14])


def test_a_network_without_heads_grows_too():
    assert resize_embeddings(small_model(vocabulary=10, tokens=False, row=False), {10: (1,)}).lm_head is None


def test_an_extended_tokenizer_gives_the_pieces():
    tokenizer = small_tokenizer()
    model = small_model(tokenizer.vocab.size)
    longer = extend_tokenizer(tokenizer, ["天气", "foxes"])
    larger = resize_embeddings(model, longer.old_pieces)
    assert larger.vocab_size == longer.tokenizer.vocab.size == model.vocab_size + 2


@pytest.mark.parametrize("pieces", [{11: (1,)}, {10: ()}, {10: (10,)}, {10: (1, 99)}, {9: (8,), 10: (9,)}])
def test_pieces_that_cannot_be_right_are_refused(pieces):
    with pytest.raises(InputError, match="old pieces for every new id"):
        resize_embeddings(small_model(vocabulary=10), pieces)
