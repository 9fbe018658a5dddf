"""One network in two libraries, and one ragged batch in the form that each of them reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import transformers
from torch import Tensor

from unmask.export.bert import FOR_A_TASK, PARTS, Architecture
from unmask.export.bert_config import write_config
from unmask.export.write import their_weights
from unmask.nets.layout import Borders, to_grid
from unmask.nets.model import Model
from unmask.nets.transformer import Tokens
from unmask.nets.trunk import Activation, Trunk

VOCABULARY, POSITIONS, IGNORED = 1000, 64, -100
LENGTHS = (64, 5, 23, 1, 40)
TIED = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
SIZES = {
    "tiny": Trunk(depth=2, width=128, heads=2, inner=512, dropout=0, attention_dropout=0),
    "mini": Trunk(
        depth=4, width=256, heads=4, inner=1024, activation=Activation.GELU_TANH, dropout=0, attention_dropout=0
    ),
}


def drawn(trunk: Trunk, tokens: bool = True, row: bool = True) -> Model:
    """A network whose every number was drawn, so that no name can be mistaken for another unnoticed."""
    model = Model(trunk, VOCABULARY, POSITIONS, tokens, row)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def drawn_for(architecture: Architecture, trunk: Trunk = SIZES["tiny"]) -> Model:
    """The same, with the heads that a class needs; a class for a task has no others."""
    if architecture not in FOR_A_TASK:
        return drawn(trunk)
    model = drawn(trunk, tokens=False, row=bool(PARTS[architecture].row))
    generator = torch.Generator().manual_seed(12)
    if architecture is Architecture.CHOOSER:
        model.row.classify = torch.nn.Linear(trunk.width, 1)
    if PARTS[architecture].each:
        model.each = torch.nn.Linear(trunk.width, 2)
        torch.nn.init.normal_(model.each.weight, std=0.05, generator=generator)
    return model


def theirs(model: Model, architecture: Architecture) -> torch.nn.Module:
    """The same network as a class of transformers, filled through the name table alone."""
    config = transformers.BertConfig(**write_config(model, 0, architecture))
    network = getattr(transformers, architecture.value)(config)
    missing, unexpected = network.load_state_dict(their_weights(model, architecture), strict=False)
    assert set(missing) <= TIED
    assert not unexpected
    return network.eval()


@dataclass(frozen=True)
class Asked:
    """A batch of rows of unequal length with answers, flat for us and padded for them."""

    tokens: Tokens
    positions: Tensor
    answers: Tensor
    follows: Tensor

    @property
    def first(self) -> Tensor:
        return self.tokens.borders.offsets_S1[:-1].long()

    def padded(self) -> dict[str, Tensor]:
        labels = torch.full_like(self.tokens.ids_T, IGNORED)
        labels[self.positions] = self.answers
        borders = self.tokens.borders
        real = borders.real_SL()
        return {
            "input_ids": to_grid(self.tokens.ids_T, borders),
            "token_type_ids": to_grid(self.tokens.segment_T, borders),
            "attention_mask": real.long(),
            "labels": to_grid(labels, borders).masked_fill(~real, IGNORED),
            "next_sentence_label": self.follows,
        }


def asked() -> Asked:
    generator = torch.Generator().manual_seed(5)
    total = sum(LENGTHS)
    positions = torch.randperm(total, generator=generator)[: total // 6].sort().values
    return Asked(
        tokens=Tokens(
            ids_T=torch.randint(1, VOCABULARY, (total,), generator=generator),
            position_T=torch.cat([torch.arange(length) for length in LENGTHS]),
            segment_T=torch.randint(0, 2, (total,), generator=generator),
            borders=Borders.of(torch.tensor([0, *LENGTHS]).cumsum(0)),
        ),
        positions=positions,
        answers=torch.randint(1, VOCABULARY, (len(positions),), generator=generator),
        follows=torch.randint(0, 2, (len(LENGTHS),), generator=generator),
    )
