"""The published sizes of BERT, to the last parameter."""

import pytest
import torch

from unmask.config.sizes import SIZES
from unmask.members import member, members, sizes
from unmask.nets.encoder import num_parameters
from unmask.nets.model import EncoderWithHeads
from unmask.recipes.bert import transformer_config

ENGLISH, CHINESE, POSITIONS = 30_522, 21_128, 512
PUBLISHED = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}
"""Trunk and pooler with the English vocabulary, as `BertModel` counts them."""


def network(name, vocabulary):
    with torch.device("meta"):
        return EncoderWithHeads(transformer_config(SIZES[name]), vocabulary, POSITIONS)


def encoder(model):
    return num_parameters(model.network) + num_parameters(model.row_head.pool)


@pytest.mark.parametrize("name", SIZES)
def test_every_size_has_the_published_number_of_parameters(name):
    assert encoder(network(name, ENGLISH)) == PUBLISHED[name]


def test_no_size_is_left_without_a_number():
    assert set(SIZES) == set(PUBLISHED)


@pytest.mark.parametrize(
    ("vocabulary", "bare", "whole"), [(ENGLISH, 109_482_240, 110_106_428), (CHINESE, 102_267_648, 102_882_442)]
)
def test_base_with_its_heads(vocabulary, bare, whole):
    model = network("base", vocabulary)
    assert encoder(model) == bare
    assert num_parameters(model) == whole


def test_heads_are_64_wide_and_feed_forward_layers_four_times_as_wide():
    for size in SIZES.values():
        assert size.width == 64 * size.heads
        assert size.ffn_width == 4 * size.width


DEFAULT_SIZES = {"elmo": "original", "gpt2": "small"}
"""Members whose paper has no base size, or describes another one."""


def test_a_member_has_the_size_asked_for_and_base_by_default():
    for recipe in members():
        for name, size in sizes(recipe.name).items():
            assert member(recipe.name, name).network.size == size, (recipe.name, name)
        default = DEFAULT_SIZES.get(recipe.name, "base")
        assert recipe.network == member(recipe.name, default).network, recipe.name
