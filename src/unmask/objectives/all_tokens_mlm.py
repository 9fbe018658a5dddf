"""All-Tokens MLM: every token of the text, after a generator has replaced some (Clark et al., 2020, section 3.6).

The network must find out by itself which tokens it may copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, own_token_sites
from unmask.core.records import Cloze, InputsAndTargets, Target
from unmask.nets.accounting.flops import ForwardCost, lm_head_cost, matmul_flops
from unmask.objectives.generator import Generator
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkValues
    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class AllTokensMLM(Objective):
    """The true token at every position: a gate copies the one that is shown, or leaves the word to a softmax."""

    weight: float = 1.0
    name: ClassVar[str] = "every"
    target_type: ClassVar[type[Target]] = Cloze
    """A cloze: the truth where a guess stands."""
    facts: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[type[Objective] | None] = Generator
    """Without guesses among them, copying all tokens would be the whole answer."""

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """A token that was not chosen may be copied; at a chosen one the truth is hidden."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample))), predicted_positions(sample))

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits at all positions, and a gate."""
        from unmask.objectives.heads.electra import AllTokensMLMHead

        return AllTokensMLMHead(backbone.config, backbone.token_embedding)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token."""
        return len(instance.inputs.ids)

    def cost(self, config: NetworkValues, vocab_size: int) -> ForwardCost:
        """A head for tokens and a gate, at every token."""
        return lm_head_cost(config, vocab_size) + ForwardCost(per_prediction=matmul_flops(config.width, 1))
