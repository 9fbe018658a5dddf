"""Masked language modelling: the token at each chosen position, read from the position itself (Devlin et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, own_token_sites
from unmask.core.records import Cloze, InputsAndTargets, Target
from unmask.nets.accounting.flops import ForwardCost, lm_head_cost
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkValues
    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class MLM(Objective):
    """The token at each chosen position, with the input embedding as output matrix."""

    weight: float = 1.0
    name: ClassVar[str] = "mlm"
    target_type: ClassVar[type[Target]] = Cloze
    """A cloze."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Each chosen position predicts its own token, whose input is hidden."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample))), predicted_positions(sample))

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits at the chosen positions only, through the token embedding itself."""
        from unmask.objectives.heads.common import MLMHead

        return MLMHead(backbone.config, backbone.token_embedding)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each chosen position."""
        return num_masked(instance)

    def cost(self, config: NetworkValues, vocab_size: int) -> ForwardCost:
        """A head for tokens at every chosen position."""
        return lm_head_cost(config, vocab_size)


def num_masked(instance: InputsAndTargets) -> int:
    """How many positions of an instance are masked."""
    return sum(len(target.positions) for target in instance.targets if isinstance(target, Cloze))
