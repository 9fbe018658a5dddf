"""GPT-2: its published sizes to the digit, its initial weights, and a network that never looks ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unmask.config.attention_pattern import CAUSAL, FULL
from unmask.core.errors import RecipeError
from unmask.members import member
from unmask.nets.encoder import TransformerEncoder, init_weights
from unmask.objectives.language_model import CLM

PUBLISHED = {"small": 124_439_808, "medium": 354_823_168, "large": 774_030_080, "xl": 1_557_611_200}


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_sizes_to_the_digit(size: str) -> None:
    recipe = member("gpt2", size)
    assert recipe.tokenizer.size == 50_257
    assert recipe.network.num_parameters(50_257, recipe.max_length) == PUBLISHED[size]


def test_projections_into_the_residual_stream_begin_small() -> None:
    recipe = member("gpt2", "tiny")
    made = TransformerEncoder(recipe.network, 500, 256)
    init_weights(made, recipe.network.init_std, torch.Generator().manual_seed(0))
    made.rescale_init()
    usual = 0.02 * 0.88  # cut at two deviations
    block = made.blocks()[1]
    expected = {
        block.attention.sublayer.qkv: usual,
        block.ffn.sublayer.up: usual,
        block.attention.sublayer.out: usual / 2,
        block.ffn.sublayer.down: usual / 2,
        made.embed.token: usual,
        made.embed.position: usual / 2,
    }
    for layer, spread in expected.items():
        assert layer.weight.std().item() == pytest.approx(spread, rel=0.03)


def test_it_reads_the_past_alone_and_no_other_pattern_is_taken() -> None:
    (task,) = member("gpt2").tasks
    assert task.attention == CAUSAL
    assert task.objectives == (CLM(),)
    assert not task.examples.isolate_documents
    with pytest.raises(RecipeError, match="can see its own answer"):
        type(task)(
            name="wrong", examples=task.examples, corruption=task.corruption, objectives=(CLM(),), attention=FULL
        )


def test_a_narrow_token_embedding_is_refused() -> None:
    recipe = member("gpt2", "tiny")
    narrow = replace(recipe.network, embedding_width=64)
    with pytest.raises(RecipeError, match="CLM multiplies states of 128 numbers with a token embedding of 64"):
        replace(recipe, network=narrow)
