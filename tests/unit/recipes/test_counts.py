"""Published numbers of parameters, to the digit, and told without torch as torch counts them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unmask.config.model_type import ModelType
from unmask.config.network import Sharing, TransformerConfig
from unmask.members import count_parameters, member, members, sizes
from unmask.nets.encoder import num_parameters
from unmask.nets.layers.heads import PoolerClassifier

EVERY = [(recipe.name, size) for recipe in members() for size in sizes(recipe.name)]
ALBERT = {"base": 11_683_584, "large": 17_683_968, "xlarge": 58_724_864, "xxlarge": 222_595_584}
ROBERTA = {"base": 124_645_632, "large": 355_359_744}
SHARED = {
    Sharing.ALL: (11_683_584, 31_705_344),
    Sharing.ATTENTION: (63_647_232, 83_668_992),
    Sharing.FEED_FORWARD: (37_686_528, 57_708_288),
    Sharing.NONE: (89_650_176, 109_671_936),
}
"""ALBERT-base by what is shared: with token embeddings of 128, and of 768 that are still projected."""
SQUARE = 768 * 768 + 768
"""A projection from 768 to 768. A trunk whose embeddings are as wide as itself has none."""


def counted(recipe):
    with torch.device("meta"):
        network = recipe.network.build(recipe.tokenizer.size, recipe.max_length)
        pooler = PoolerClassifier(recipe.network, 2).pool
    plain = recipe.model_type is ModelType.ELECTRA or not isinstance(recipe.network, TransformerConfig)
    return num_parameters(network) + (0 if plain else num_parameters(pooler))


def test_t5_has_the_published_numbers_of_parameters():
    found = [count_parameters(member("t5", size)) for size in ("small", "base", "large")]
    assert found == [60_506_624, 222_903_552, 737_668_096]


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_every_member_in_every_size_is_counted_as_torch_counts_it(name, size):
    recipe = member(name, size)
    assert count_parameters(recipe) == counted(recipe)


@pytest.mark.parametrize("size", ALBERT)
def test_albert_in_its_four_sizes(size):
    assert count_parameters(member("albert", size)) == ALBERT[size]


@pytest.mark.parametrize("size", ROBERTA)
def test_roberta_with_positions_that_begin_at_2(size):
    assert count_parameters(member("roberta", size)) == ROBERTA[size]


@pytest.mark.parametrize("sharing", Sharing)
def test_albert_in_its_four_ways_of_sharing(sharing):
    narrow, wide = SHARED[sharing]
    recipe = member("albert")
    assert count_parameters(replace(recipe, network=replace(recipe.network, sharing=sharing))) == narrow
    assert (
        count_parameters(replace(recipe, network=replace(recipe.network, sharing=sharing, embedding_width=0)))
        == wide - SQUARE
    )


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("bert", 102_267_648),
        ("wwm", 102_267_648),
        ("wwm-ext", 102_267_648),
        ("macbert", 102_267_648),
        ("spanbert", 108_310_272),
    ],
)
def test_members_of_berts_shape_differ_by_their_vocabulary_alone(name, published):
    assert count_parameters(member(name)) == published


def test_the_depth_of_a_network_that_shares_everything_is_free():
    recipe = member("albert")
    assert {
        count_parameters(replace(recipe, network=replace(recipe.network, depth=depth))) for depth in (1, 12, 48)
    } == {11_683_584}


def test_every_further_set_of_layers_costs_one_layer_of_bert():
    recipe, layer = member("albert"), 12 * 768**2 + 13 * 768
    found = [
        count_parameters(replace(recipe, network=replace(recipe.network, **sets)))
        for sets in ({}, {"share_groups": 4}, {"layers_per_group": 3}, {"share_groups": 2, "layers_per_group": 3})
    ]
    assert [one - found[0] for one in found] == [0, 3 * layer, 2 * layer, 5 * layer]
