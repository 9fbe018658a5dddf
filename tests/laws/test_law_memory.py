"""Law of memory: with memory, the states of a segment are those of one long causal pass, as far as memory reaches.

Nothing of the future moves them, no gradient flows into a memory, and an emptied memory is as good as none.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unmask.config.attention_pattern import MaskKind
from unmask.config.network import Positions, TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import EncoderMemory, HiddenStates, TokenInputs, TransformerEncoder, init_weights

LENGTH, SEGMENTS, ROWS, VOCAB = 6, 4, 3, 40
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def network(memory_length: int, depth: int = 2) -> TransformerEncoder:
    config = TransformerConfig(
        depth=depth,
        width=16,
        heads=2,
        ffn_width=32,
        num_segments=1,
        positions=Positions.RELATIVE_SINUSOIDAL,
        memory_length=memory_length,
    )
    made = TransformerEncoder(config, VOCAB, 0)
    init_weights(made, 0.3, torch.Generator().manual_seed(3))
    return made.eval()


def tokens(ids_BL: Tensor) -> TokenInputs:
    rows, length = ids_BL.shape
    flat, place = ids_BL.flatten(), torch.arange(length).repeat(rows)
    ends = list(range(0, rows * length + 1, length))
    return TokenInputs(flat, place, torch.zeros_like(flat), PackedSequences.of(ends, mask_kind=MaskKind.CAUSAL))


def streams() -> Tensor:
    return torch.randint(0, VOCAB, (ROWS, LENGTH * SEGMENTS), generator=torch.Generator().manual_seed(1))


def by_segments(net: TransformerEncoder, ids_BL: Tensor) -> tuple[list[HiddenStates], EncoderMemory]:
    """Segment after segment, with the memory of those before."""
    memory, found = net.empty_memory(ROWS), []
    for segment_BL in ids_BL.split(LENGTH, dim=1):
        shown = tokens(segment_BL)
        found.append(net(shown, memory=memory))
        memory = memory.extended(found[-1], shown.sequences)
    return found, memory


def joined(found: list[HiddenStates], layer: int) -> Tensor:
    return torch.cat([one.layers[layer].view(ROWS, LENGTH, -1) for one in found], 1)


@torch.no_grad()
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_memory_as_long_as_the_past_gives_the_states_of_one_long_pass(depth: int) -> None:
    net, ids = network(LENGTH * SEGMENTS, depth), streams()
    long = net(tokens(ids))
    found, _ = by_segments(net, ids)
    for layer in range(depth + 1):
        torch.testing.assert_close(joined(found, layer), long.layers[layer].view(ROWS, -1, 16), **TOLERANCE)


@torch.no_grad()
def test_a_shorter_memory_reaches_back_by_its_length_in_every_layer() -> None:
    net, ids = network(LENGTH, depth=2), streams()
    last = by_segments(net, ids)[0][-1].last_TD.view(ROWS, LENGTH, -1)
    reach = 2 * LENGTH  # layers times memory
    start = LENGTH * (SEGMENTS - 1)
    for place in range(start):
        other = ids.clone()
        other[:, place] = (other[:, place] + 1) % VOCAB
        moved = by_segments(net, other)[0][-1].last_TD.view(ROWS, LENGTH, -1)[:, 0]
        same = torch.equal(moved, last[:, 0])
        assert same == (place < start - reach), place


@torch.no_grad()
def test_nothing_of_the_future_moves_a_state() -> None:
    net, ids = network(LENGTH), streams()
    before = joined(by_segments(net, ids)[0], -1)
    for place in (1, LENGTH, 2 * LENGTH + 3):
        other = ids.clone()
        other[:, place] = (other[:, place] + 1) % VOCAB
        after = joined(by_segments(net, other)[0], -1)
        assert torch.equal(after[:, :place], before[:, :place])
        assert not torch.equal(after[:, place:], before[:, place:])


@torch.no_grad()
def test_a_row_that_continues_nothing_reads_no_memory() -> None:
    net, ids = network(LENGTH), streams()[:, :LENGTH]
    _, memory = by_segments(net, streams())
    fresh, emptied = net(tokens(ids)), net(tokens(ids), memory=memory.reset(torch.zeros(ROWS, dtype=torch.bool)))
    torch.testing.assert_close(emptied.last_TD, fresh.last_TD, **TOLERANCE)
    some = net(tokens(ids), memory=memory.reset(torch.tensor([True, False, True]))).last_TD.view(ROWS, LENGTH, -1)
    torch.testing.assert_close(some[1], fresh.last_TD.view(ROWS, LENGTH, -1)[1], **TOLERANCE)
    assert not torch.allclose(some[0], fresh.last_TD.view(ROWS, LENGTH, -1)[0], **TOLERANCE)


def test_no_gradient_flows_into_a_memory() -> None:
    net, ids = network(LENGTH), streams()
    found, memory = by_segments(net, ids)
    assert not any(layer.requires_grad for layer in memory.layers_SMD)
    net.zero_grad()
    found[-1].last_TD.sum().backward()
    table = net.token_embedding.weight.grad
    assert table is not None
    last = set(ids[:, -LENGTH:].flatten().tolist())
    assert not table[[token for token in range(VOCAB) if token not in last]].any()


@torch.no_grad()
def test_the_terms_of_a_score_are_those_of_the_paper() -> None:
    """A plain loop over pairs (section 3.3) against the attention of a layer."""
    net = network(LENGTH, depth=1)
    attention = net.blocks()[0].attention.sublayer
    shown = tokens(streams()[:1, :LENGTH])
    x_TD = net(shown).layers[0]
    q, k, v = attention.qkv(x_TD).view(LENGTH, 3, 2, 8).unbind(1)
    bias = attention.score_bias
    heads = torch.zeros(LENGTH, 2, 8)
    for head in range(2):
        for i in range(LENGTH):
            scores = torch.full((LENGTH,), -torch.inf)
            for j in range(i + 1):
                position = bias.project(bias.sinusoids(torch.tensor([i - j])))[0].view(2, 8)[head]
                content = (q[i, head] + bias.content_offset[head]) @ k[j, head]
                scores[j] = (content + (q[i, head] + bias.position_offset[head]) @ position) / 8**0.5
            heads[i, head] = scores.softmax(0) @ v[:, head]
    torch.testing.assert_close(attention(x_TD, shown.sequences), attention.out(heads.flatten(1)), **TOLERANCE)
