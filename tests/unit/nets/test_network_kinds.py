"""Each kind of network builds what its configuration counts, and no state reads what its stream must not read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from unmask.config.attention_pattern import BIDIRECTIONAL_LM, CAUSAL, FULL, MaskKind
from unmask.config.network import (
    EmbeddingTableConfig,
    EncoderDecoderConfig,
    LSTMConfig,
    NetworkConfig,
    Norm,
    NormKind,
    Positions,
    TransformerConfig,
)
from unmask.config.sizes import Size
from unmask.core.errors import RecipeError, UserError
from unmask.nets.attention.backends import AttentionBackend
from unmask.nets.batch.batch import collate
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs, init_weights, num_parameters
from unmask.nets.layers.cross_attention import EncoderOutput
from unmask.nets.layers.relative_position import relative_bucket
from unmask.recipes.t5 import transformer_config as t5_stack

VOCAB, LENGTH = 50, 24
PLAIN = TransformerConfig(depth=2, width=16, heads=2, ffn_width=32, dropout=0.0, attention_dropout=0.0)
STACK = t5_stack(Size(depth=2, width=16, heads=2, ffn_width=32)).with_dropout(0.0)
LSTM = LSTMConfig(depth=2, direction_width=8, cell_width=16, dropout=0.0)
KINDS: dict[str, NetworkConfig] = {
    "encoder": PLAIN,
    "t5": EncoderDecoderConfig(encoder=STACK, decoder=STACK, scale_logits=True),
    "t5, nothing shared": EncoderDecoderConfig(encoder=STACK, decoder=STACK, share_embedding=False, tie_output=False),
    "vaswani": EncoderDecoderConfig(encoder=PLAIN, decoder=replace(PLAIN, depth=1, embedding_width=0)),
    "wide heads": replace(PLAIN, head_width=12, norm=Norm.PRE, norm_kind=NormKind.RMS, bias=False),
    "rotary": replace(PLAIN, positions=Positions.ROTARY),
    "no positions": replace(PLAIN, positions=Positions.NONE),
    "blank": replace(PLAIN, has_blank_stream=True),
    "lstm": LSTM,
    "table": EmbeddingTableConfig(width=16),
}


def tokens(ids_T: Tensor, lengths: tuple[int, ...], attention=FULL) -> TokenInputs:
    """A batch of rows under a pattern."""
    import numpy as np

    from unmask.core.records import Inputs, InputsAndTargets

    rows = np.append(0, np.cumsum(lengths)).astype(np.int64)
    position = np.concatenate([np.arange(one) for one in lengths]).astype(np.int64)
    zeros = np.zeros(len(position), dtype=np.int32)
    inputs = Inputs(ids_T.numpy().astype(np.int32), zeros.astype(np.uint8), zeros, position, rows)
    return collate(InputsAndTargets(inputs, ()), attention=attention).tokens


def built(config: NetworkConfig):
    network = config.build(VOCAB, LENGTH)
    init_weights(network, 0.3, torch.Generator().manual_seed(1))
    return network.eval()


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_the_configuration_counts_what_it_builds(config: NetworkConfig) -> None:
    network = config.build(VOCAB, LENGTH)
    assert num_parameters(network) == config.num_parameters(VOCAB, LENGTH)
    assert network.vocab_size == VOCAB
    assert network.config == config


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_states_have_the_width_that_heads_are_built_for(config: NetworkConfig) -> None:
    states = built(config)(tokens(torch.arange(12), (7, 5)))
    assert len(states.layers) == config.depth + 1
    assert states.last_TD.shape == (12, config.width)


def test_each_direction_of_an_lstm_reads_one_side_alone() -> None:
    network, lengths = built(LSTM), (7, 5)
    usual = network(tokens(torch.arange(12), lengths, BIDIRECTIONAL_LM))
    for changed in range(12):
        ids = torch.arange(12)
        ids[changed] = 40
        other = network(tokens(ids, lengths, BIDIRECTIONAL_LM))
        row = range(7) if changed < 7 else range(7, 12)
        for name, reads in (("forward", row[changed - row.start :]), ("backward", row[: changed - row.start + 1])):
            for before, after in zip(usual.stream(name).layers[1:], other.stream(name).layers[1:], strict=True):
                differs = (before != after).any(-1).nonzero().flatten().tolist()
                assert differs == list(reads), (name, changed)


def test_a_row_is_read_alike_alone_and_among_longer_ones() -> None:
    network = built(LSTM)
    both = network(tokens(torch.arange(12), (7, 5))).last_TD[7:]
    alone = network(tokens(torch.arange(7, 12), (5,))).last_TD
    assert torch.allclose(both, alone, atol=1e-6)


def test_a_decoder_reads_its_past_and_all_of_its_source() -> None:
    network = built(KINDS["t5"])
    source = tokens(torch.arange(12), (7, 5))
    own = PackedSequences.of([0, 4, 9], mask_kind=MaskKind.CAUSAL)
    position_T = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 4])

    def run(ids_T: Tensor, source_ids_T: Tensor) -> Tensor:
        states = network(tokens(source_ids_T, (7, 5))).last_TD
        return network.own_decoder()(ids_T, position_T, own, EncoderOutput(states, source.sequences, own))

    usual = run(torch.arange(9), torch.arange(12))
    for changed in range(9):
        ids = torch.arange(9)
        ids[changed] = 40
        differs = (run(ids, torch.arange(12)) != usual).any(-1).nonzero().flatten().tolist()
        assert differs == list(range(changed, 4 if changed < 4 else 9))
    other = torch.arange(12)
    other[2] = 40
    assert (run(torch.arange(9), other) != usual).any(-1).nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_buckets_are_those_of_transformers() -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    distance = torch.arange(-300, 301)
    for bidirectional in (True, False):
        theirs = t5.T5Attention._relative_position_bucket(distance, bidirectional, 32, 128)
        assert torch.equal(relative_bucket(distance, 32, 128, bidirectional), theirs)


@pytest.mark.parametrize("backend", [AttentionBackend.REFERENCE, AttentionBackend.AUTO])
def test_scores_depend_on_distances_alone_under_rotation(backend: AttentionBackend) -> None:
    network = built(KINDS["rotary"])
    for block in network.blocks():
        block.attention.sublayer.backend = backend
    ids = torch.tensor([5, 5, 5, 5])
    usual = network(tokens(ids, (4,))).last_TD
    assert torch.allclose(usual, usual[:1].expand_as(usual), atol=1e-5), "equal tokens have equal states"


def test_an_lstm_refuses_what_it_does_not_compute() -> None:
    LSTM.check_attention("task", BIDIRECTIONAL_LM)
    LSTM.check_attention("task", FULL)
    with pytest.raises(
        RecipeError, match="task has an attention pattern, but a network of kind LSTMConfig has no attention"
    ):
        LSTM.check_attention("task", CAUSAL)
    with pytest.raises(RecipeError, match="found LSTMConfig"):
        LSTM.decoder_config(0)
    with pytest.raises(UserError, match="A generator needs a Transformer encoder, found a network of kind LSTMConfig"):
        built(LSTM).require_encoder("A generator")
