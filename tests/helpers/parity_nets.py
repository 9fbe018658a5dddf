"""One network in two libraries, and one ragged batch in the form that each of them reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import transformers
from torch import Tensor

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Sharing, TransformerConfig
from unmask.interop.hf.config_json import write_config
from unmask.interop.hf.lookup import architectures, model_map, parts_of
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import to_hf_state_dict
from unmask.nets.batch.packed_sequences import PackedSequences, pad
from unmask.nets.encoder import TokenInputs
from unmask.nets.layers.heads import PoolerClassifier
from unmask.nets.model import EncoderWithHeads

VOCABULARY, POSITIONS, IGNORED = 1000, 64, -100
LENGTHS = (64, 5, 23, 1, 40)
TINY = TransformerConfig(depth=2, width=128, heads=2, ffn_width=512, dropout=0, attention_dropout=0)
MINI = replace(TINY, depth=4, width=256, heads=4, ffn_width=1024)
SHAPES = {
    ModelType.BERT: {"tiny": TINY, "mini": replace(MINI, activation=Activation.GELU_TANH)},
    ModelType.ROBERTA: {
        "tiny": replace(TINY, num_segments=1, position_offset=2, norm_eps=1e-5),
        "mini": replace(MINI, num_segments=2, position_offset=4),
    },
    ModelType.ALBERT: {
        "tiny": replace(TINY, embedding_width=32, sharing=Sharing.ALL, activation=Activation.GELU_TANH),
        "mini": replace(MINI, embedding_width=64, sharing=Sharing.ALL, share_groups=2, layers_per_group=2, depth=8),
    },
    ModelType.ERNIE: {
        "tiny": replace(TINY, num_segments=4, activation=Activation.RELU),
        "mini": MINI,
    },
    ModelType.ELECTRA: {
        "tiny": replace(TINY, pooler_activation=Activation.GELU),
        "mini": replace(MINI, embedding_width=64, pooler_activation=Activation.GELU),
    },
}
"""Two shapes of each dialect, which differ in what its settings can say."""
EVERY = tuple(architecture for dialect in ModelType for architecture in architectures(dialect))
"""All classes of all dialects."""
EVERY_SIZE = tuple((architecture, size) for architecture in EVERY for size in SHAPES[architecture.model_type])


def pad_of(trunk: TransformerConfig) -> int:
    """The id of padding that positions are counted from, where they are."""
    return max(0, trunk.position_offset - 1)


def drawn(trunk: TransformerConfig, tokens: bool = True, row: bool = True, replaced: bool = False) -> EncoderWithHeads:
    """A network whose every number was drawn, so that no name can be mistaken for another unnoticed."""
    return redrawn(EncoderWithHeads(trunk, VOCABULARY, POSITIONS, tokens, row, replaced))


def redrawn(model: EncoderWithHeads) -> EncoderWithHeads:
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def drawn_for(architecture: Architecture, size: str = "tiny") -> EncoderWithHeads:
    """The same, with the heads that a class needs and no others."""
    trunk, parts = SHAPES[architecture.model_type][size], parts_of(architecture)
    layers = {layer.partition(".")[0] for layer in parts.layers}
    model = EncoderWithHeads(
        trunk, VOCABULARY, POSITIONS, parts.has_lm_head, "row_head" in layers, "discriminator_head" in layers
    )
    if architecture.task is HFTask.MULTIPLE_CHOICE:
        model.row_head = PoolerClassifier(trunk, 1)
    if architecture.task is HFTask.CLASSIFIER:
        model.row_head = PoolerClassifier(trunk, 3)
    if "token_classifier" in layers:
        model.token_classifier = torch.nn.Linear(trunk.width, 2)
    return redrawn(model).eval()


def theirs(model: EncoderWithHeads, architecture: Architecture) -> torch.nn.Module:
    """The same network as a class of transformers, filled through the name table alone."""
    made = getattr(transformers, architecture.name)
    config = made.config_class(**write_config(model, pad_of(model.config), architecture))
    network = made(config)
    missing, unexpected = network.load_state_dict(to_hf_state_dict(model, architecture), strict=False)
    names = model_map(architecture.model_type).lm_head_names
    assert set(missing) <= {*names.bias[1:], *names.output}
    assert not unexpected
    return network.eval()


@dataclass(frozen=True)
class Asked:
    """A batch of rows of unequal length with answers, flat for us and padded for them."""

    tokens: TokenInputs
    positions: Tensor
    answers: Tensor
    follows: Tensor
    pad: int

    @property
    def first(self) -> Tensor:
        return self.tokens.sequences.cu_seqlens_S1[:-1].long()

    def inputs(self) -> dict[str, Tensor]:
        """What every class of theirs reads."""
        borders = self.tokens.sequences
        real = borders.valid_SL()
        return {
            "input_ids": pad(self.tokens.ids_T, borders).masked_fill(~real, self.pad),
            "token_type_ids": pad(self.tokens.segment_T, borders),
            "attention_mask": real.long(),
        }

    def labels(self) -> Tensor:
        """The answers of the cloze, where there are such."""
        labels = torch.full_like(self.tokens.ids_T, IGNORED)
        labels[self.positions] = self.answers
        borders = self.tokens.sequences
        return pad(labels, borders).masked_fill(~borders.valid_SL(), IGNORED)

    def padded(self) -> dict[str, Tensor]:
        """All that BERT's class for pre-training reads."""
        return {**self.inputs(), "labels": self.labels(), "next_sentence_label": self.follows}


def asked(trunk: TransformerConfig = TINY) -> Asked:
    generator = torch.Generator().manual_seed(5)
    total = sum(LENGTHS)
    positions = torch.randperm(total, generator=generator)[: total // 6].sort().values
    low = pad_of(trunk) + 1
    return Asked(
        tokens=TokenInputs(
            ids_T=torch.randint(low, VOCABULARY, (total,), generator=generator),
            position_T=torch.cat([torch.arange(length) for length in LENGTHS]),
            segment_T=torch.randint(0, trunk.num_segments, (total,), generator=generator),
            sequences=PackedSequences.of(torch.tensor([0, *LENGTHS]).cumsum(0)),
        ),
        positions=positions,
        answers=torch.randint(low, VOCABULARY, (len(positions),), generator=generator),
        follows=torch.randint(0, 2, (len(LENGTHS),), generator=generator),
        pad=pad_of(trunk),
    )
