"""One network in two libraries, and one ragged batch in the form that each of them reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import transformers
from torch import Tensor

from unmask.dialect import Dialect
from unmask.export.architecture import Architecture, Purpose
from unmask.export.dialects import architectures, grammar_of, parts_of
from unmask.export.settings import write_config
from unmask.export.write import their_weights
from unmask.nets.heads import RowHead
from unmask.nets.layout import Borders, to_grid
from unmask.nets.model import Model
from unmask.nets.transformer import Tokens
from unmask.nets.trunk import Activation, Sharing, Trunk

VOCABULARY, POSITIONS, IGNORED = 1000, 64, -100
LENGTHS = (64, 5, 23, 1, 40)
TINY = Trunk(depth=2, width=128, heads=2, inner=512, dropout=0, attention_dropout=0)
MINI = replace(TINY, depth=4, width=256, heads=4, inner=1024)
SHAPES = {
    Dialect.BERT: {"tiny": TINY, "mini": replace(MINI, activation=Activation.GELU_TANH)},
    Dialect.ROBERTA: {
        "tiny": replace(TINY, segments=1, first_position=2, epsilon=1e-5),
        "mini": replace(MINI, segments=2, first_position=4),
    },
    Dialect.ALBERT: {
        "tiny": replace(TINY, embedding=32, sharing=Sharing.ALL, activation=Activation.GELU_TANH),
        "mini": replace(MINI, embedding=64, sharing=Sharing.ALL, groups=2, cycle=2, depth=8),
    },
    Dialect.ERNIE: {
        "tiny": replace(TINY, segments=4, activation=Activation.RELU),
        "mini": MINI,
    },
    Dialect.ELECTRA: {
        "tiny": replace(TINY, pooled=Activation.GELU),
        "mini": replace(MINI, embedding=64, pooled=Activation.GELU),
    },
}
"""Two shapes of each dialect, which differ in what its settings can say."""
EVERY = tuple(architecture for dialect in Dialect for architecture in architectures(dialect))
"""All classes of all dialects."""
EVERY_SIZE = tuple((architecture, size) for architecture in EVERY for size in SHAPES[architecture.dialect])


def pad_of(trunk: Trunk) -> int:
    """The id of padding that positions are counted from, where they are."""
    return max(0, trunk.first_position - 1)


def drawn(trunk: Trunk, tokens: bool = True, row: bool = True, replaced: bool = False) -> Model:
    """A network whose every number was drawn, so that no name can be mistaken for another unnoticed."""
    return redrawn(Model(trunk, VOCABULARY, POSITIONS, tokens, row, replaced))


def redrawn(model: Model) -> Model:
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def drawn_for(architecture: Architecture, size: str = "tiny") -> Model:
    """The same, with the heads that a class needs and no others."""
    trunk, parts = SHAPES[architecture.dialect][size], parts_of(architecture)
    layers = {layer.partition(".")[0] for layer in parts.layers}
    model = Model(trunk, VOCABULARY, POSITIONS, parts.tokens, "row" in layers, "replaced" in layers)
    if architecture.purpose is Purpose.CHOOSER:
        model.row = RowHead(trunk, 1)
    if architecture.purpose is Purpose.CLASSIFIER:
        model.row = RowHead(trunk, 3)
    if "each" in layers:
        model.each = torch.nn.Linear(trunk.width, 2)
    return redrawn(model).eval()


def theirs(model: Model, architecture: Architecture) -> torch.nn.Module:
    """The same network as a class of transformers, filled through the name table alone."""
    made = getattr(transformers, architecture.name)
    config = made.config_class(**write_config(model, pad_of(model.shape), architecture))
    network = made(config)
    missing, unexpected = network.load_state_dict(their_weights(model, architecture), strict=False)
    names = grammar_of(architecture.dialect).tokens
    assert set(missing) <= {*names.bias[1:], *names.output}
    assert not unexpected
    return network.eval()


@dataclass(frozen=True)
class Asked:
    """A batch of rows of unequal length with answers, flat for us and padded for them."""

    tokens: Tokens
    positions: Tensor
    answers: Tensor
    follows: Tensor
    pad: int

    @property
    def first(self) -> Tensor:
        return self.tokens.borders.offsets_S1[:-1].long()

    def inputs(self) -> dict[str, Tensor]:
        """What every class of theirs reads."""
        borders = self.tokens.borders
        real = borders.real_SL()
        return {
            "input_ids": to_grid(self.tokens.ids_T, borders).masked_fill(~real, self.pad),
            "token_type_ids": to_grid(self.tokens.segment_T, borders),
            "attention_mask": real.long(),
        }

    def labels(self) -> Tensor:
        """The answers of the cloze, where there are such."""
        labels = torch.full_like(self.tokens.ids_T, IGNORED)
        labels[self.positions] = self.answers
        borders = self.tokens.borders
        return to_grid(labels, borders).masked_fill(~borders.real_SL(), IGNORED)

    def padded(self) -> dict[str, Tensor]:
        """All that BERT's class for pre-training reads."""
        return {**self.inputs(), "labels": self.labels(), "next_sentence_label": self.follows}


def asked(trunk: Trunk = TINY) -> Asked:
    generator = torch.Generator().manual_seed(5)
    total = sum(LENGTHS)
    positions = torch.randperm(total, generator=generator)[: total // 6].sort().values
    low = pad_of(trunk) + 1
    return Asked(
        tokens=Tokens(
            ids_T=torch.randint(low, VOCABULARY, (total,), generator=generator),
            position_T=torch.cat([torch.arange(length) for length in LENGTHS]),
            segment_T=torch.randint(0, trunk.segments, (total,), generator=generator),
            borders=Borders.of(torch.tensor([0, *LENGTHS]).cumsum(0)),
        ),
        positions=positions,
        answers=torch.randint(low, VOCABULARY, (len(positions),), generator=generator),
        follows=torch.randint(0, 2, (len(LENGTHS),), generator=generator),
        pad=pad_of(trunk),
    )
