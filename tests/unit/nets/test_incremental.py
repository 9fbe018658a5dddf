"""An encoder that goes on behind its source: the same as a pass over everything under a PREFIX sight."""

from dataclasses import replace

import pytest
import torch

from unmask.config.network import Norm, Sharing, TransformerConfig
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights
from unmask.nets.incremental import NewTokens, decode_step, prefill

SMALL = TransformerConfig(depth=3, width=32, heads=4, ffn_width=64)
TRUNKS = [SMALL, replace(SMALL, norm=Norm.PRE), replace(SMALL, sharing=Sharing.ALL, embedding_width=16)]
SOURCES = [[5, 6, 7, 8], [9, 4]]
TEXTS = [[[11, 12, 13], [21, 22, 23]], [[31, 32, 33], [41, 42, 43]]]
"""Two texts for each source."""


def network(trunk):
    made = TransformerEncoder(trunk, 50, 16).eval()
    init_weights(made, 0.2, torch.Generator().manual_seed(0))
    return made


def flat(rows, **sight):
    ids = torch.tensor([number for row in rows for number in row])
    position = torch.cat([torch.arange(len(row)) for row in rows])
    ends = [0, *torch.tensor([len(row) for row in rows]).cumsum(0).tolist()]
    return TokenInputs(ids, position, torch.zeros_like(ids), PackedSequences.of(ends, "cpu", **sight))


def whole(made, source, text):
    """All layers of one source with one text behind it."""
    tokens = flat([source + text], mask_kind=MaskKind.PREFIX_LM, prefix_lengths=[len(source)])
    return [layer[len(source) :] for layer in made(tokens).layers]


def newest(texts, place):
    ids = torch.tensor([text[place] for some in texts for text in some])
    position = torch.tensor([len(source) + place for source, some in zip(SOURCES, texts, strict=True) for _ in some])
    return NewTokens(ids, position, torch.zeros_like(ids))


def kept_for(made):
    tokens = flat(SOURCES)
    return prefill(made, made(tokens), tokens.sequences)


@pytest.mark.parametrize("trunk", TRUNKS, ids=lambda trunk: f"{trunk.norm}-{trunk.sharing}")
def test_token_by_token_equals_all_at_once_in_every_layer(trunk):
    made = network(trunk)
    with torch.no_grad():
        kept = kept_for(made)
        for memory in kept:
            memory.reorder(torch.arange(2), torch.zeros(2, 2, dtype=torch.int64))  # two texts for each source
        for place in range(3):
            found = decode_step(made, newest(TEXTS, place), kept).layers
            for number in range(4):
                expected = whole(made, SOURCES[number // 2], TEXTS[number // 2][number % 2])
                for layer, exact in zip(found, expected, strict=True):
                    assert torch.allclose(layer[number], exact[place], atol=1e-5)


def test_texts_may_change_places_and_sources_may_leave():
    """Written so far: one token for each source. Then only the second source goes on, with two texts from its one."""
    made = network(SMALL)
    with torch.no_grad():
        kept = kept_for(made)
        decode_step(made, newest([[[11]], [[31]]], 0), kept)
        for memory in kept:
            memory.reorder(torch.tensor([1]), torch.tensor([[0, 0]]))
        found = decode_step(
            made, NewTokens(torch.tensor([1, 2]), torch.tensor([3, 3]), torch.tensor([0, 0])), kept
        ).last_TD
        for memory in kept:
            memory.reorder(torch.tensor([0]), torch.tensor([[1, 0]]))
        later = decode_step(
            made, NewTokens(torch.tensor([3, 3]), torch.tensor([4, 4]), torch.tensor([0, 0])), kept
        ).last_TD
        assert torch.allclose(found[0], whole(made, SOURCES[1], [31, 1])[-1][1], atol=1e-5)
        assert torch.allclose(found[1], whole(made, SOURCES[1], [31, 2])[-1][1], atol=1e-5)
        assert torch.allclose(later[0], whole(made, SOURCES[1], [31, 2, 3])[-1][2], atol=1e-5)
        assert torch.allclose(later[1], whole(made, SOURCES[1], [31, 1, 3])[-1][2], atol=1e-5)
