"""The decoder: torch's own as the reference, no look ahead, and the same text whole and token by token."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from unmask.config.network import Activation, Norm, Positions, Sharing, TransformerConfig
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.decoder import Decoder
from unmask.nets.encoder import init_weights, num_parameters
from unmask.nets.layers.attention import AttentionBackend
from unmask.nets.layers.cross_attention import CrossAttention, EncoderOutput

SMALL = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.0, attention_dropout=0.0)
TRUNKS = {
    "post": SMALL,
    "pre": replace(SMALL, norm=Norm.PRE, activation=Activation.GEGLU),
    "narrow": replace(SMALL, embedding_width=16, positions=Positions.SINUSOIDAL),
    "shared": replace(SMALL, depth=3, sharing=Sharing.ALL),
}
TEXTS, SOURCES = [3, 6, 1], [4, 2, 7]
every_trunk = pytest.mark.parametrize("trunk", TRUNKS.values(), ids=TRUNKS.keys())


def ends(lengths):
    return [0, *torch.tensor(lengths).cumsum(0).tolist()]


def decoder(trunk=SMALL):
    made = Decoder(trunk, nn.Embedding(50, trunk.token_width), 16, 24).eval()
    init_weights(made, 0.2, torch.Generator().manual_seed(0))
    return made


def own(lengths=TEXTS):
    return PackedSequences.of(ends(lengths), "cpu", MaskKind.CAUSAL)


def source(lengths=SOURCES, texts=TEXTS, width=24):
    states = torch.randn(sum(lengths), width, generator=torch.Generator().manual_seed(1))
    return EncoderOutput(states, PackedSequences.of(ends(lengths)), own(texts))


def ids(lengths=TEXTS):
    return torch.randint(0, 50, (sum(lengths),), generator=torch.Generator().manual_seed(2))


def positions(lengths=TEXTS):
    return torch.cat([torch.arange(length) for length in lengths])


def run(made, some, looked=None):
    with torch.no_grad():
        return made(some, positions(), own(), looked or source())


@every_trunk
def test_token_by_token_equals_all_at_once(trunk):
    made, looked = decoder(trunk), source()
    whole, begin = run(made, ids()), ends(TEXTS)
    with torch.no_grad():
        kept = made.prefill(looked.states_UD, looked.sequences)
        for place in range(max(TEXTS)):
            at = torch.tensor([min(start + place, end - 1) for start, end in pairwise(begin)])
            stepped = made.decode_step(ids()[at], torch.full((3,), place), kept)
            for row, length in enumerate(TEXTS):
                if place < length:
                    assert torch.allclose(stepped[row], whole[begin[row] + place], atol=1e-5)


@every_trunk
def test_a_token_to_come_moves_nothing_before_it(trunk):
    made, some = decoder(trunk), ids()
    before = run(made, some)
    for changed in range(3, 9):
        some = ids()
        some[changed] = (some[changed] + 1) % 50
        after = run(made, some)
        assert torch.allclose(before[:changed], after[:changed], atol=1e-6)
        assert torch.allclose(before[9:], after[9:], atol=1e-6)
        assert not torch.allclose(before[changed:9], after[changed:9])


def test_a_text_looks_at_its_own_source_only():
    made, looked = decoder(), source()
    moved = looked.states_UD.clone()
    moved[4:6] += 1.0  # the second source
    before, after = run(made, ids(), looked), run(made, ids(), replace(looked, states_UD=moved))
    assert torch.equal(before[:3], after[:3])
    assert torch.equal(before[9:], after[9:])
    assert (before[3:9] - after[3:9]).abs().amin(0).max() > 0


@pytest.mark.parametrize(
    "lowering", [AttentionBackend.LOOP, AttentionBackend.SDPA, AttentionBackend.FLEX, AttentionBackend.AUTO]
)
@pytest.mark.parametrize(("sources", "texts"), [(SOURCES, TEXTS), ([5, 5], [3, 3])])
def test_every_lowering_equals_the_dense_reference(lowering, sources, texts):
    cross, x = CrossAttention(SMALL, 24).eval(), torch.randn(sum(texts), 32)
    looked = source(sources, texts)
    found = []
    for wish in (lowering, AttentionBackend.REFERENCE):
        cross.backend = wish
        y = cross(x, looked)
        found.append((y, *torch.autograd.grad(y.square().sum(), list(cross.parameters()))))
    assert all(torch.allclose(one, two, atol=1e-5, rtol=1e-4) for one, two in zip(*found, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("lowering", [AttentionBackend.SDPA, AttentionBackend.VARLEN, AttentionBackend.AUTO])
def test_on_a_gpu_every_lowering_equals_the_dense_reference_in_bf16(lowering):
    cross, x, looked = CrossAttention(SMALL, 24).eval(), torch.randn(sum(TEXTS), 32), source()
    cross.backend = AttentionBackend.REFERENCE
    with torch.no_grad():
        exact = cross(x, looked)
        cross = cross.cuda().bfloat16()
        cross.backend = lowering
        there = PackedSequences.of(ends(SOURCES), "cuda"), PackedSequences.of(ends(TEXTS), "cuda", MaskKind.CAUSAL)
        found = cross(x.cuda().bfloat16(), EncoderOutput(looked.states_UD.cuda().bfloat16(), *there))
    assert (found.float().cpu() - exact).abs().max() < 0.02


def torchs_own(made):
    """One layer of torch's decoder with the weights of ours."""
    block = made.blocks()[0]
    theirs = nn.TransformerDecoderLayer(32, 4, 64, 0.0, "gelu", 1e-12, batch_first=True).eval()
    cross = block.cross_attention.sublayer
    pairs = {
        theirs.self_attn.in_proj_weight: block.attention.sublayer.qkv.weight,
        theirs.self_attn.in_proj_bias: block.attention.sublayer.qkv.bias,
        theirs.self_attn.out_proj.weight: block.attention.sublayer.out.weight,
        theirs.self_attn.out_proj.bias: block.attention.sublayer.out.bias,
        theirs.multihead_attn.in_proj_weight: torch.cat([cross.query.weight, cross.kv.weight]),
        theirs.multihead_attn.in_proj_bias: torch.cat([cross.query.bias, cross.kv.bias]),
        theirs.multihead_attn.out_proj.weight: cross.out.weight,
        theirs.multihead_attn.out_proj.bias: cross.out.bias,
        theirs.linear1.weight: block.ffn.sublayer.up.weight,
        theirs.linear1.bias: block.ffn.sublayer.up.bias,
        theirs.linear2.weight: block.ffn.sublayer.down.weight,
        theirs.linear2.bias: block.ffn.sublayer.down.bias,
    }
    for parameter, value in pairs.items():
        parameter.data.copy_(value)
    return theirs


def test_a_layer_equals_that_of_torch():
    made = Decoder(replace(SMALL, depth=1), nn.Embedding(50, 32), 16, 32).eval()
    init_weights(made, 0.2, torch.Generator().manual_seed(0))
    looked = source(width=32)
    found = run(made, ids(), looked)
    with torch.no_grad():
        first = made.embed(ids(), positions(), ids())
        theirs = torchs_own(made)
        for (start, end), (low, high) in zip(pairwise(ends(TEXTS)), pairwise(ends(SOURCES)), strict=True):
            past = nn.Transformer.generate_square_subsequent_mask(end - start)
            one = theirs(first[None, start:end], looked.states_UD[None, low:high], tgt_mask=past, tgt_is_causal=True)
            assert torch.allclose(found[start:end], one[0], atol=1e-5)


def test_what_is_said_goes_through_the_token_embedding_that_was_given():
    token = nn.Embedding(50, 32)
    made = Decoder(SMALL, token, 16, 24)
    assert made.embed.token is token
    assert torch.allclose(made.logits(token.weight[:3]), token.weight[:3] @ token.weight.T + made.bias)
    alone = num_parameters(made)
    assert alone == num_parameters(Decoder(SMALL, nn.Embedding(60, 32), 16, 24)) - 10 * 32 - 10
