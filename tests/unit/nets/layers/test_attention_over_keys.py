"""The general form of attention: a memory, a score bias, rotated positions, keys of other states."""

import pytest
import torch
from torch import nn

from unmask.config.attention_pattern import MaskKind
from unmask.config.network import Norm, Positions, TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import EncoderMemory, TokenInputs, TransformerEncoder, init_weights
from unmask.nets.layers.attention import AttentionBackend

SIZES = {"depth": 3, "width": 32, "heads": 4, "ffn_width": 64, "dropout": 0.0, "attention_dropout": 0.0}
BACKENDS = [AttentionBackend.AUTO, AttentionBackend.REFERENCE]


def network(**changes):
    made = TransformerEncoder(TransformerConfig(**{**SIZES, "positions": Positions.NONE, **changes}), 50, 64).eval()
    init_weights(made, 0.2, torch.Generator().manual_seed(0))
    return made


def tokens(lengths, start=0, kind=MaskKind.CAUSAL):
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    ids = torch.cat([7 * row + torch.arange(start, start + n) for row, n in enumerate(lengths)]) % 50
    zeros = torch.zeros_like(ids)
    return TokenInputs(ids, zeros, zeros, PackedSequences.of(offsets, mask_kind=kind))


class DistanceBias(nn.Module):
    """A number for each head and distance; of the later two thirds it also reads queries and keys."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 64, generator=torch.Generator().manual_seed(1)))

    def forward(self, q_SHLK, k_SHMK, query, key):
        bias_HSLM = self.table[:, (query.index - key.index).clamp(-20, 40) + 20]
        bias = bias_HSLM.transpose(0, 1)
        return bias + 0.1 * q_SHLK.sum(-1, keepdim=True) * bias + k_SHMK.sum(-1)[:, :, None]


class Rotary(nn.Module):
    def forward(self, x_THK, index_T):
        half = x_THK.shape[-1] // 2
        angle = index_T[:, None, None] * torch.logspace(0, -2, half)
        a, b = x_THK.split(half, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def with_bias(made):
    bias = DistanceBias()
    for block in made.blocks():
        block.attention.sublayer.score_bias = bias
    return made


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("biased", [False, True])
def test_rows_in_pieces_with_a_memory_equal_whole_rows(norm, biased, backend):
    made = with_bias(network(norm=norm)) if biased else network(norm=norm)
    for block in made.blocks():
        block.attention.sublayer.backend = backend
    with torch.no_grad():
        whole = made(tokens([12, 12]))
        memory, found = EncoderMemory.empty(made.config, 2, 12), []
        for start, length in ((0, 3), (3, 5), (8, 4)):
            piece = tokens([length, length], start)
            states = made(piece, memory=memory)
            memory = memory.extended(states, piece.sequences)
            found.append(states.last_TD.view(2, length, -1))
    assert torch.allclose(torch.cat(found, 1).flatten(0, 1), whole.last_TD, atol=1e-5)


def test_a_short_memory_holds_the_latest_states_and_can_be_reset():
    made = network()
    with torch.no_grad():
        memory = EncoderMemory.empty(made.config, 2, 4)
        for lengths, start in (([3, 1], 0), ([2, 2], 3)):
            piece = tokens(lengths, start)
            states = made(piece, memory=memory)
            memory = memory.extended(states, piece.sequences)
    assert memory.valid_SM.tolist() == [[True] * 4, [False, True, True, True]]
    assert torch.equal(memory.layers_SMD[0][0, -2:], states.layers[0][:2])
    fresh = memory.reset(torch.tensor([True, False]))
    with torch.no_grad():
        piece = tokens([4, 4], 5)
        continued, alone = made(piece, memory=fresh).last_TD, made(piece).last_TD
    assert not torch.allclose(continued[:4], alone[:4], atol=1e-3)
    assert torch.allclose(continued[4:], alone[4:], atol=1e-5)


def test_a_memory_has_no_gradient_and_new_tokens_do():
    made = network()
    piece = tokens([4, 4])
    memory = EncoderMemory.empty(made.config, 2, 4).extended(made(piece), piece.sequences)
    assert not any(layer.requires_grad for layer in memory.layers_SMD)
    made(tokens([4, 4], 4), memory=memory).last_TD.sum().backward()


@pytest.mark.parametrize("kind", [MaskKind.FULL, MaskKind.CAUSAL, MaskKind.SLIDING_WINDOW])
def test_a_bias_is_added_to_the_scores(kind):
    made = with_bias(network())
    attention = made.blocks()[0].attention.sublayer
    lengths, x = [5, 2], torch.randn(7, 32, generator=torch.Generator().manual_seed(2))
    window = 2 if kind is MaskKind.SLIDING_WINDOW else 0
    sequences = PackedSequences.of([0, 5, 7], mask_kind=kind, window=window)
    with torch.no_grad():
        found = attention(x, sequences)
        q, k, v = attention.qkv(x).view(7, 3, 4, 8).unbind(1)
        rows = []
        for start, end in ((0, 5), (5, 7)):
            index = torch.arange(end - start)
            apart = index[:, None] - index
            allowed = {MaskKind.FULL: apart < 99, MaskKind.CAUSAL: apart >= 0}.get(kind, apart.abs() <= 2)
            one, two = q[start:end].transpose(0, 1), k[start:end].transpose(0, 1)
            table = attention.score_bias.table[:, apart + 20]
            bias = table + 0.1 * one.sum(-1, keepdim=True) * table + two.sum(-1)[:, None]
            scores = (one @ two.transpose(-1, -2) * 8**-0.5 + bias).masked_fill(~allowed, -torch.inf)
            rows.append((scores.softmax(-1) @ v[start:end].transpose(0, 1)).transpose(0, 1).flatten(1))
        assert torch.allclose(found, attention.out(torch.cat(rows)), atol=1e-5)
    assert sum(lengths) == len(found)


def test_rotated_positions_see_distances_alone():
    made = network()
    for block in made.blocks():
        block.attention.sublayer.rotary = Rotary()
    plain = network()
    batch = tokens([6, 3])
    with torch.no_grad():
        rotated = made(batch).last_TD
        assert not torch.allclose(rotated, plain(batch).last_TD, atol=1e-3)
        for block in made.blocks():
            block.attention.sublayer.backend = AttentionBackend.REFERENCE
        assert torch.allclose(made(batch).last_TD, rotated, atol=1e-5)
        alone = made(tokens([6])).last_TD
    assert torch.allclose(alone, rotated[:6], atol=1e-5)


def test_scores_without_a_scale():
    """T5 divides nothing: as if queries were larger by the root of the head width."""
    made, usual = network(scale_attention=False), network()
    with torch.no_grad():
        for block in usual.blocks():
            block.attention.sublayer.qkv.weight[:32].mul_(8**0.5)
            block.attention.sublayer.qkv.bias[:32].mul_(8**0.5)
    batch = tokens([6, 3])
    with torch.no_grad():
        assert torch.allclose(made(batch).last_TD, usual(batch).last_TD, atol=1e-5)
