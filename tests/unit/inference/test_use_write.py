"""Texts that a network writes: what it keeps changes nothing, and no special token is written."""

import pytest
import torch
from small_net import small_tokenizer

from unmask.config.inference import BeamSearch
from unmask.config.network import Norm, TransformerConfig
from unmask.data.tokenize.vocab import Vocab
from unmask.inference.beam_search import beam_search
from unmask.inference.generate import decode, generate
from unmask.inference.pack_texts import pack, with_special_tokens
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.encoder import TokenInputs
from unmask.nets.layers.cross_attention import EncoderOutput
from unmask.nets.layers.scalar_mix import ScalarMix
from unmask.objectives.seq2seq import PrefixLMObjective, Seq2SeqObjective
from unmask.train.multi_head_model import MultiHeadModel

TOKENIZER = small_tokenizer()
VOCAB: Vocab = TOKENIZER.vocab
TRUNKS = [
    TransformerConfig(depth=2, width=16, heads=2, ffn_width=32),
    TransformerConfig(depth=2, width=16, heads=2, ffn_width=32, norm=Norm.PRE, embedding_width=8, num_segments=0),
]
OBJECTIVES = [PrefixLMObjective(), Seq2SeqObjective(12, depth=1)]
SOURCES = [
    with_special_tokens(VOCAB, [30, 31, 32, 33]),
    with_special_tokens(VOCAB, [40]),
    with_special_tokens(VOCAB, [50, 51]),
]
BEAMS = [BeamSearch(1, 12), BeamSearch(3, 8, 0.6, 2)]


def learner(objective, trunk=TRUNKS[0], seed=3):
    made = MultiHeadModel(trunk, (objective,), 120, 24)
    made.init_weights(seed)
    for name, parameter in made.named_parameters():
        parameter.data.mul_(1 if "norm" in name else 15)
    return made.eval()


class Anew:
    """Reads everything again for each token, as in training: nothing is kept."""

    def __init__(self, made, objective):
        self.made, self.objective = made, objective
        self.open = torch.zeros(120, dtype=torch.bool)
        self.open[torch.from_numpy(VOCAB.ordinary).long()] = True
        self.open[VOCAB.sep] = True

    def __call__(self, beams):
        texts = [
            [(SOURCES[s], ids) for ids in row]
            for s, row in zip(beams.source_B.tolist(), beams.ids_BWL.tolist(), strict=True)
        ]
        said = torch.stack([torch.stack([self.after(*pair) for pair in row]) for row in texts])
        return said.masked_fill(~self.open, -torch.inf)

    def after(self, source, ids):
        behind = isinstance(self.objective, PrefixLMObjective)
        return (self.behind if behind else self.beside)(source, ids).log_softmax(-1)

    def behind(self, source, ids):
        row, segments = [*source, *ids], self.made.network.config.num_segments
        segment = torch.tensor([0] * len(source) + [min(1, max(segments - 1, 0))] * len(ids))
        borders = PackedSequences.of([0, len(row)], "cpu", MaskKind.PREFIX_LM, [len(source)])
        states = self.made.network(TokenInputs(torch.tensor(row), torch.arange(len(row)), segment, borders))
        return self.made.heads["write_after"].lm_head(self.made.layer_mix(states).last_TD[-1:])[0]

    def beside(self, source, ids):
        tokens, shown = pack([source]), [source[0], *ids]
        states = self.made.layer_mix(self.made.network(tokens)).last_TD
        own, decoder = PackedSequences.of([0, len(shown)], "cpu", MaskKind.CAUSAL), self.made.heads["write"].decoder
        x = decoder(torch.tensor(shown), torch.arange(len(shown)), own, EncoderOutput(states, tokens.sequences, own))
        return decoder.logits(x[-1:])[0]


@pytest.mark.parametrize("trunk", TRUNKS, ids=["post", "pre"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=["behind", "beside"])
@pytest.mark.parametrize("how", BEAMS, ids=["greedy", "beam"])
def test_what_is_kept_changes_nothing(trunk, objective, how):
    made = learner(objective, trunk)
    with torch.no_grad():
        anew = beam_search(Anew(made, objective), len(SOURCES), VOCAB.sep, how)
    found = generate(made, objective.name, pack(SOURCES), VOCAB, how)
    assert [one.ids for one in found] == [one.ids for one in anew]
    assert [one.score for one in found] == pytest.approx([one.score for one in anew], abs=1e-4)
    assert len({one.ids for one in found}) == 3, "the sources are told apart"
    assert any(len(one.ids) > 2 for one in found)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=["behind", "beside"])
def test_heads_that_read_a_mix_of_layers_write_from_it(objective):
    made = learner(objective)
    made.layer_mix = ScalarMix(3)
    for parameter in made.layer_mix.parameters():
        parameter.data.normal_(0, 2, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        anew = beam_search(Anew(made, objective), len(SOURCES), VOCAB.sep, BEAMS[0])
    assert [one.ids for one in generate(made, objective.name, pack(SOURCES), VOCAB, BEAMS[0])] == [
        one.ids for one in anew
    ]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=["behind", "beside"])
def test_no_special_token_is_written(objective):
    made = learner(objective)
    head = made.heads[objective.name]
    bias = head.lm_head.bias if isinstance(objective, PrefixLMObjective) else head.decoder.bias
    bias.data[[VOCAB.cls, VOCAB.mask, VOCAB.pad, VOCAB.unk]] += 1000.0
    for one in generate(made, objective.name, pack(SOURCES), VOCAB, BEAMS[0]):
        assert set(one.ids) <= set(VOCAB.ordinary.tolist())


def test_a_network_that_was_learning_goes_on_learning():
    made = learner(OBJECTIVES[0]).train()
    generate(made, "write_after", pack(SOURCES), VOCAB, BEAMS[0])
    assert made.training


def test_texts_are_spelled_without_spaces_where_nobody_writes_them():
    ids = TOKENIZER.pipeline.encode("今天天气真好，我们去公园", add_special_tokens=False).ids
    assert decode(TOKENIZER, [VOCAB.cls, *ids, VOCAB.sep]) == "今天天气真好，我们去公园"
    ids = TOKENIZER.pipeline.encode("the quick fox jumps.", add_special_tokens=False).ids
    assert decode(TOKENIZER, ids) == "the quick fox jumps."
