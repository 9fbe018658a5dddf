"""Vectors: pooled right, in order, whatever the batches; and a file that numpy reads."""

import numpy as np
import pytest
import torch
from small_net import small_model, small_tokenizer

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.inference.embed import LayerPooling, batches_by_tokens, embed, write_vectors
from unmask.inference.pack_texts import pack

TEXTS = ("天气", "the quick brown fox jumps", "", "散步。", "the dog", "我们去公园散步")


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def states(model, tokenizer, text, layer):
    with torch.no_grad():
        return model.network(pack([tokenizer.pipeline.encode(text).ids])).layers[layer].numpy()


@pytest.mark.parametrize("layer", [0, 2, 3])
@pytest.mark.parametrize("pool", [Pooling.MEAN, Pooling.FIRST, Pooling.MAX])
def test_every_text_has_its_own_vector_in_its_own_place(pool, layer, tokenizer):
    model = small_model()
    (vectors,) = embed(model, tokenizer, TEXTS, LayerPooling(layer, pool), batch=2)
    pooled = {
        Pooling.MEAN: lambda x: x.mean(0),
        Pooling.FIRST: lambda x: x[0],
        Pooling.MAX: lambda x: x.max(0),
    }[pool]
    wanted = np.stack([pooled(states(model, tokenizer, text, layer)) for text in TEXTS])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)


def test_pooling_with_weights_is_refused():
    with pytest.raises(InputError, match=r"mean, first or max; found attention"):
        LayerPooling(3, Pooling.ATTENTION)


def test_a_long_stream_comes_in_blocks_and_in_order(tokenizer):
    model = small_model()
    many = [TEXTS[number % 6] for number in range(150)]
    blocks = list(embed(model, tokenizer, iter(many), LayerPooling(3), batch=2))
    (once,) = embed(model, tokenizer, TEXTS, LayerPooling(3))
    assert [len(block) for block in blocks] == [64, 64, 22]
    np.testing.assert_allclose(np.concatenate(blocks), once[np.arange(150) % 6], atol=1e-5)


def test_vectors_of_length_one(tokenizer):
    (vectors,) = embed(small_model(), tokenizer, TEXTS, LayerPooling(3, normalize=True))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_long_texts_are_cut_and_counted(tokenizer):
    cut = []
    long, short = "天" * 30, "天" * 22
    (vectors,) = embed(small_model(), tokenizer, [long, short, "天"], LayerPooling(3), cut=cut.append)
    assert sum(cut) == 1
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_a_text_that_spells_a_special_token_is_text(tokenizer):
    vectors, other = (next(embed(small_model(), tokenizer, [text], LayerPooling(3))) for text in ("[SEP]", "[ SEP ]"))
    np.testing.assert_allclose(vectors, other, atol=1e-6)


def test_a_layer_that_is_not_there_is_told(tokenizer):
    with pytest.raises(InputError, match=r"layers 0 \(the embeddings\) to 3; there is no layer 4"):
        next(embed(small_model(), tokenizer, TEXTS, LayerPooling(4)))


def test_blocks_become_one_file(tmp_path):
    blocks = [np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32) for n in (3, 1, 11)]
    assert write_vectors(tmp_path / "v.npy", iter(blocks), 5) == (15, 5)
    back = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert back.dtype == np.float32
    assert np.array_equal(back, np.concatenate(blocks))


def test_no_blocks_are_an_empty_array_and_a_failure_leaves_nothing(tmp_path):
    assert write_vectors(tmp_path / "v.npy", iter(()), 5) == (0, 5)
    assert np.load(tmp_path / "v.npy").shape == (0, 5)

    def broken():
        yield np.zeros((2, 5), np.float32)
        raise InputError("bad row")

    with pytest.raises(InputError):
        write_vectors(tmp_path / "w.npy", broken(), 5)
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]


def test_rows_are_computed_together_up_to_a_number_and_up_to_a_room() -> None:
    """Every row once, in order; a row that is longer than the room goes alone."""
    lengths = [50, 9, 9, 9, 4, 4, 4, 4, 4, 1]
    parts = list(batches_by_tokens(range(10), lengths, batch_size=4, max_tokens=20))
    assert parts == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]
