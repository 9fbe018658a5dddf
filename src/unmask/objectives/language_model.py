"""Language models in an order: the next token, the token before, or tokens in a drawn order.

What arrives: `NextToken` or `Ordering`. What leaves: a prediction for every position that has an answer.
What never happens here: a view under which the answer can be looked up; a task with such a view is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, next_token_sites, own_token_sites, previous_token_sites
from unmask.core.errors import RecipeError
from unmask.core.records import InputsAndTargets, NextToken, PermutedTarget, Target
from unmask.nets.accounting.flops import ForwardCost, lm_output_cost
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkConfig
    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class CLM(Objective):
    """The next token from those before it, with the input embedding as output matrix (GPT)."""

    weight: float = 1.0
    name: ClassVar[str] = "clm"
    target_type: ClassVar[type[Target]] = NextToken
    """The next token."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Position i predicts token i + 1."""
        return PredictionSites(tuple(next_token_sites(sample)))

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network whose states are not as wide as its token embedding."""
        if config.token_width != config.width:
            raise RecipeError(
                f"CLM multiplies states of {config.width} numbers with a token embedding of {config.token_width}. Set "
                "network.embedding_width=0."
            )

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits at every position, through the token embedding itself."""
        from unmask.objectives.heads.common import CLMHead

        return CLMHead(backbone.token_embedding)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """Every position with a weight."""
        found = (target.weights for target in instance.targets if isinstance(target, NextToken))
        return sum(int((weights > 0).sum()) for weights in found)

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """The whole vocabulary at every position."""
        return ForwardCost(per_token=lm_output_cost(config, vocab_size).per_prediction)


@dataclass(frozen=True, slots=True)
class BidirectionalLM(Objective):
    """Say the next token from the left and the token before from the right, in two streams (ELMo)."""

    weight: float = 1.0
    has_head: ClassVar[bool] = False
    name: ClassVar[str] = "both_ways"
    target_type: ClassVar[type[Target]] = NextToken
    """The next token; read backwards, the token before."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """The forward stream says what follows, the backward stream what precedes."""
        return PredictionSites((*next_token_sites(sample, "forward"), *previous_token_sites(sample, "backward")))


@dataclass(frozen=True, slots=True)
class PLM(Objective):
    """Say tokens in a drawn order, each from those drawn before it (XLNet)."""

    stream: str = "query"
    weight: float = 1.0
    has_head: ClassVar[bool] = False
    name: ClassVar[str] = "plm"
    target_type: ClassVar[type[Target]] = PermutedTarget
    """A drawn order."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Each ordered position says its own token, which is in the input: only the view hides it."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample), self.stream)))
