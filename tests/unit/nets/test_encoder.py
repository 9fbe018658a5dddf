"""The Transformer: its published sizes, its lowerings, and that sequences never see each other."""

import pytest
import torch

from unmask.config.network import Activation, Norm, Positions, Sharing, TransformerConfig
from unmask.core.errors import RecipeError
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights, num_parameters
from unmask.nets.layers.attention import AttentionBackend

SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
PUBLISHED = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}
SHARED = {
    Sharing.ALL: 11_683_584,
    Sharing.ATTENTION: 63_647_232,
    Sharing.FEED_FORWARD: 37_686_528,
    Sharing.NONE: 89_650_176,
}
SMALL = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.0, attention_dropout=0.0)


def pooler(width):
    return width * width + width


def on_meta(trunk, vocabulary):
    with torch.device("meta"):
        return num_parameters(TransformerEncoder(trunk, vocabulary, 512))


@pytest.mark.parametrize("size", SIZES)
def test_published_sizes_to_the_digit(size):
    depth, width = SIZES[size]
    trunk = TransformerConfig(depth=depth, width=width, heads=width // 64, ffn_width=4 * width)
    assert on_meta(trunk, 30522) + pooler(width) == PUBLISHED[size]


@pytest.mark.parametrize("sharing", Sharing)
def test_sharing_modes_to_the_digit(sharing):
    trunk = TransformerConfig(depth=12, width=768, heads=12, ffn_width=3072, embedding_width=128, sharing=sharing)
    assert on_meta(trunk, 30000) + pooler(768) == SHARED[sharing]


def network(trunk=SMALL, seed=0):
    made = TransformerEncoder(trunk, 100, 64).eval()
    init_weights(made, 0.1, torch.Generator().manual_seed(seed))
    return made


def tokens(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    position = torch.cat([torch.arange(length) for length in lengths])
    ids = torch.randint(0, 100, (total,), generator=generator)
    return TokenInputs(ids, position, torch.randint(0, 2, (total,), generator=generator), PackedSequences.of(offsets))


def run(made, batch, lowering):
    for block in made.blocks():
        block.attention.sublayer.backend = lowering
    with torch.no_grad():
        return made(batch).last_TD


@pytest.mark.parametrize("lengths", [[7, 7, 7], [5, 1, 12, 3]])
@pytest.mark.parametrize(
    "lowering", [AttentionBackend.LOOP, AttentionBackend.SDPA, AttentionBackend.FLEX, AttentionBackend.AUTO]
)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_lowering_equals_the_dense_reference(lengths, lowering):
    made, batch = network(), tokens(lengths)
    assert torch.allclose(run(made, batch, lowering), run(made, batch, AttentionBackend.REFERENCE), atol=1e-6)


def gradients(made, batch, lowering):
    for block in made.blocks():
        block.attention.sublayer.backend = lowering
    made.zero_grad()
    made(batch).last_TD.square().sum().backward()
    return [parameter.grad.clone() for parameter in made.parameters()]


@pytest.mark.parametrize("lengths", [[7, 7, 7], [5, 1, 12, 3]])
@pytest.mark.parametrize("lowering", [AttentionBackend.LOOP, AttentionBackend.SDPA])
def test_gradients_equal_those_of_the_dense_reference(lengths, lowering):
    made, batch = network(), tokens(lengths)
    pairs = zip(gradients(made, batch, lowering), gradients(made, batch, AttentionBackend.REFERENCE), strict=True)
    assert all(torch.allclose(one, two, atol=1e-4, rtol=1e-4) for one, two in pairs)


VARIANTS = [
    SMALL,
    TransformerConfig(
        depth=2,
        width=32,
        heads=4,
        ffn_width=64,
        norm=Norm.PRE,
        activation=Activation.GEGLU,
        dropout=0,
        attention_dropout=0,
    ),
    TransformerConfig(
        depth=2,
        width=32,
        heads=4,
        ffn_width=64,
        positions=Positions.SINUSOIDAL,
        embedding_width=16,
        dropout=0,
        attention_dropout=0,
    ),
]


@pytest.mark.parametrize("trunk", VARIANTS)
def test_a_sequence_is_the_same_alone_and_in_a_batch(trunk):
    made, lengths = network(trunk), [5, 9, 2]
    batch = tokens(lengths)
    together = run(made, batch, AttentionBackend.SDPA)
    start = 0
    for length in lengths:
        cut = slice(start, start + length)
        alone = TokenInputs(
            batch.ids_T[cut], batch.position_T[cut], batch.segment_T[cut], PackedSequences.of([0, length])
        )
        assert torch.allclose(run(made, alone, AttentionBackend.SDPA), together[cut], atol=1e-5)
        start += length


def test_changing_one_sequence_changes_no_other():
    made, batch = network(), tokens([4, 6])
    before = run(made, batch, AttentionBackend.SDPA)
    batch.ids_T[5] = (batch.ids_T[5] + 1) % 100
    after = run(made, batch, AttentionBackend.SDPA)
    assert torch.equal(before[:4], after[:4])
    assert not torch.allclose(before[4:], after[4:])


def test_the_grid_and_back():
    borders = PackedSequences.of([0, 3, 4, 9])
    x = torch.randn(9, 2)
    grid = pad(x, borders)
    assert grid.shape == (3, 5, 2)
    assert torch.equal(unpad(grid, borders), x)
    assert grid[1, 1:].abs().sum() == 0


def test_gradients_go_to_the_grid_and_back():
    borders = PackedSequences.of([0, 3, 4, 9])
    x = torch.randn(9, 2, requires_grad=True)
    weight = torch.randn(9, 2)
    (unpad(pad(x, borders) * 2, borders) * weight).sum().backward()
    assert torch.equal(x.grad, 2 * weight)


@pytest.mark.parametrize("offsets", [[0, 3, 4, 9], [0, 4, 8]])
def test_borders_know_the_place_of_every_token(offsets):
    borders = PackedSequences.of(offsets)
    assert torch.equal(borders.padded_index_T, borders.valid_SL().flatten().nonzero()[:, 0])


def test_blocks_that_share_are_one_object():
    made = network(TransformerConfig(depth=3, width=32, heads=4, ffn_width=64, sharing=Sharing.ALL))
    assert len({id(block.attention) for block in made.blocks()}) == 1
    assert len(made.blocks()) == 3


def test_the_same_seed_draws_the_same_network():
    one, two, other = network(seed=1), network(seed=1), network(seed=2)
    pairs = zip(one.parameters(), two.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not torch.equal(one.embed.token.weight, other.embed.token.weight)
    weight = one.embed.token.weight
    assert weight.abs().max() <= 0.2
    assert abs(weight.std().item() - 0.088) < 0.005


def test_a_trunk_that_cannot_be_built_is_refused():
    with pytest.raises(RecipeError, match="heads divide"):
        TransformerConfig(depth=2, width=30, heads=4, ffn_width=64)
    with pytest.raises(RecipeError, match="Dropout"):
        TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=1.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "lowering", [AttentionBackend.SDPA, AttentionBackend.FLEX, AttentionBackend.VARLEN, AttentionBackend.AUTO]
)
@pytest.mark.parametrize("lengths", [[64, 64], [5, 1, 120, 33]])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_on_a_gpu_every_lowering_equals_the_dense_reference_in_bf16(lengths, lowering):
    trunk = TransformerConfig(depth=2, width=128, heads=2, ffn_width=256, dropout=0.0, attention_dropout=0.0)
    made = TransformerEncoder(trunk, 100, 128).eval()
    init_weights(made, 0.1, torch.Generator().manual_seed(0))
    host = tokens(lengths)
    exact = run(made, host, AttentionBackend.REFERENCE)
    made = made.cuda().bfloat16()
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    batch = TokenInputs(
        host.ids_T.cuda(), host.position_T.cuda(), host.segment_T.cuda(), PackedSequences.of(offsets, "cuda")
    )
    difference = (run(made, batch, lowering).float().cpu() - exact).abs().max()
    assert difference < 0.08
