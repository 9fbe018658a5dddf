"""Replaced token detection: whether each token is the text's own (Clark et al., 2020).

A chosen token that the generator sampled correctly counts as the text's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.core.records import Cloze, InputsAndTargets, Target
from unmask.nets.accounting.flops import ForwardCost, discriminator_head_cost
from unmask.objectives.generator import Generator
from unmask.objectives.mlm import num_masked
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkValues
    from unmask.nets.backbone import Backbone


class JudgedTokens(StrEnum):
    """Which tokens are judged."""

    ALL = "all"
    """Every token of every row, [CLS] and [SEP] too."""
    CHOSEN = "chosen"
    """Only those that a generator wrote: "ELECTRA 15%", which shows what learning from all tokens is worth."""


@dataclass(frozen=True, slots=True)
class RTD(Objective):
    """Whether each token was replaced: sigmoid cross-entropy."""

    weight: float = 50.0
    """The binary loss is small compared with the MLM loss; the paper found 50 in a search from 1 to 100."""
    judged_tokens: JudgedTokens = JudgedTokens.ALL
    name: ClassVar[str] = "replaced"
    target_type: ClassVar[type[Target]] = Cloze
    """A cloze: what was there, to be compared with what was written."""
    facts: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[type[Objective] | None] = Generator
    """Somebody must have written something."""

    def build_head(self, backbone: Backbone) -> nn.Module:
        """A layer and one number for each token."""
        from unmask.objectives.heads.electra import RTDHead

        return RTDHead(backbone.config, self.judged_tokens)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token, or for each chosen position."""
        if self.judged_tokens is JudgedTokens.ALL:
            return len(instance.inputs.ids)
        return num_masked(instance)

    def cost(self, config: NetworkValues, vocab_size: int) -> ForwardCost:
        """A layer and one number."""
        return discriminator_head_cost(config)
