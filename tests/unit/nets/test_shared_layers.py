"""Which layers share: sets that take turns, the counts that follow, and gradients that add up over the depths."""

import pytest
import torch
from transformers import AlbertConfig, AlbertModel

from unmask.config.network import Activation, Norm, Positions, Sharing, TransformerConfig
from unmask.core.errors import RecipeError
from unmask.nets.accounting.parameters import encoder_parameters
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights, num_parameters

PLAIN = {"width": 16, "heads": 2, "ffn_width": 32, "dropout": 0.0, "attention_dropout": 0.0}


def network(**shape):
    made = TransformerEncoder(TransformerConfig(**PLAIN, **shape), 50, 20).eval()
    init_weights(made, 0.2, torch.Generator().manual_seed(1))
    return made


def tokens():
    ids = torch.arange(9) * 5
    return TokenInputs(ids, torch.arange(9), torch.zeros(9, dtype=torch.int64), PackedSequences.of([0, 9]))


@pytest.mark.parametrize(
    ("depth", "groups", "cycle", "turns"),
    [
        (4, 1, 1, (0, 0, 0, 0)),
        (4, 2, 1, (0, 0, 1, 1)),
        (4, 1, 2, (0, 1, 0, 1)),
        (4, 4, 1, (0, 1, 2, 3)),
        (12, 2, 3, (0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5)),
    ],
)
def test_sets_take_turns_as_in_transformers(depth, groups, cycle, turns):
    trunk = TransformerConfig(depth=depth, sharing=Sharing.ALL, share_groups=groups, layers_per_group=cycle, **PLAIN)
    assert trunk.layer_of_depth == turns
    assert trunk.num_distinct_layers == groups * cycle
    blocks = network(depth=depth, sharing=Sharing.ALL, share_groups=groups, layers_per_group=cycle).blocks()
    for which in ("attention", "ffn"):
        made = [getattr(block, which) for block in blocks]
        assert [[one is other for other in made] for one in made] == [[a == b for b in turns] for a in turns]
    config = AlbertConfig(
        vocab_size=50, embedding_size=16, hidden_size=16, num_attention_heads=2, intermediate_size=32,
        num_hidden_layers=depth // cycle, num_hidden_groups=groups, inner_group_num=cycle,
    )  # fmt: skip
    theirs = AlbertModel(config, add_pooling_layer=False).encoder
    layers = [(group, inner) for group in range(groups) for inner in range(cycle)]
    assert turns == tuple(
        layers.index((int(n / (config.num_hidden_layers / config.num_hidden_groups)), inner))
        for n in range(config.num_hidden_layers)
        for inner in range(cycle)
    )
    assert (
        len(theirs.albert_layer_groups) * len(theirs.albert_layer_groups[0].albert_layers) == trunk.num_distinct_layers
    )


@pytest.mark.parametrize("sharing", [Sharing.ATTENTION, Sharing.FEED_FORWARD])
def test_half_of_a_layer_may_be_shared_while_the_other_half_is_its_own(sharing):
    blocks = network(depth=4, sharing=sharing, share_groups=2).blocks()
    attend, feed = (len({id(getattr(block, which)) for block in blocks}) for which in ("attention", "ffn"))
    assert (attend, feed) == ((2, 4) if sharing is Sharing.ATTENTION else (4, 2))


@pytest.mark.parametrize("sharing", [Sharing.ATTENTION, Sharing.FEED_FORWARD, Sharing.ALL])
@pytest.mark.parametrize(("groups", "cycle"), [(1, 1), (2, 1), (1, 2)])
def test_the_gradient_of_what_is_shared_is_the_sum_over_the_depths(sharing, groups, cycle):
    shared = network(depth=4, sharing=sharing, share_groups=groups, layers_per_group=cycle)
    alone = network(depth=4)
    alone.embed.load_state_dict(shared.embed.state_dict())
    for one, other in zip(alone.blocks(), shared.blocks(), strict=True):
        one.load_state_dict(other.state_dict())
    for made in (shared, alone):
        made(tokens()).last_TD.square().sum().backward()
    expected = {}
    for one, other in zip(alone.blocks(), shared.blocks(), strict=True):
        for (name, own), common in zip(one.named_parameters(), other.parameters(), strict=True):
            assert own.grad.abs().max() > 0 or "qkv.bias" in name
            expected[common] = expected.get(common, 0) + own.grad
    for common, summed in expected.items():
        assert torch.allclose(common.grad, summed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"depth": 4, "sharing": Sharing.ALL, "layers_per_group": 3}, "numbers whose product divides the depth"),
        ({"depth": 6, "sharing": Sharing.ALL, "share_groups": 4}, "found depth 6, 4 groups of 1"),
        (
            {"depth": 6, "sharing": Sharing.ALL, "share_groups": 2, "layers_per_group": 2},
            "numbers whose product divides the depth",
        ),
        ({"depth": 6, "sharing": Sharing.ALL, "share_groups": 0}, "found depth 6, 0 groups"),
        ({"depth": 4, "share_groups": 2}, "Groups name the layers that share weights, but here none do"),
        ({"depth": 4, "layers_per_group": 2}, "Set sharing to attention, feed_forward or all"),
        ({"depth": 4, "position_offset": -1}, "index 0 or more, found -1"),
    ],
)
def test_layers_that_cannot_be_parted_are_refused(shape, sentence):
    with pytest.raises(RecipeError, match=sentence):
        TransformerConfig(**PLAIN, **shape)


@pytest.mark.parametrize("sharing", Sharing)
@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("more", [
    {},
    {"embedding_width": 8, "num_segments": 0, "num_tasks": 3},
    {"embedding_width": 16, "activation": Activation.GEGLU},
    {"positions": Positions.SINUSOIDAL, "position_offset": 2},
    {"position_offset": 2, "num_segments": 1},
])  # fmt: skip
def test_parameters_are_counted_from_the_shape_as_torch_counts_them(sharing, norm, more):
    sets = {} if sharing is Sharing.NONE else {"share_groups": 2, "layers_per_group": 3}
    trunk = TransformerConfig(depth=12, sharing=sharing, norm=norm, **PLAIN, **sets, **more)
    assert encoder_parameters(trunk, 50, 20) == num_parameters(TransformerEncoder(trunk, 50, 20))


def test_positions_begin_where_the_trunk_says():
    plain, later = network(depth=1), network(depth=1, position_offset=2)
    later.load_state_dict({**plain.state_dict(), "embed.position.weight": later.embed.position.weight})
    with torch.no_grad():
        later.embed.position.weight[2:].copy_(plain.embed.position.weight)
        later.embed.position.weight[:2] = torch.nan
    assert later.embed.position.num_embeddings == 22
    assert later.embed.max_positions == plain.embed.max_positions == 20
    assert torch.equal(later(tokens()).last_TD, plain(tokens()).last_TD)
    assert network(depth=1, positions=Positions.SINUSOIDAL).embed.max_positions == 0
