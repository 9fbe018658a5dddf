"""Language-model objectives: the next token, the token on either side, or tokens in a factorization order.

A task whose attention pattern shows the answer is refused.
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
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Position i predicts token i + 1."""
        return PredictionSites(tuple(next_token_sites(sample)))

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network whose states are not as wide as its token embedding."""
        _check_width(self, config)

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits at every position, through the token embedding itself."""
        from unmask.objectives.heads.common import CLMHead

        return CLMHead(backbone.token_embedding)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """Every position with a weight."""
        return _num_next_tokens(instance)

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """The whole vocabulary at every position."""
        return ForwardCost(per_token=lm_output_cost(config, vocab_size).per_prediction)


@dataclass(frozen=True, slots=True)
class BidirectionalLM(Objective):
    """The next token from the left and the previous token from the right, in two streams (ELMo)."""

    weight: float = 1.0
    name: ClassVar[str] = "both_ways"
    target_type: ClassVar[type[Target]] = NextToken
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """The forward stream predicts the next token, the backward stream the previous one."""
        return PredictionSites((*next_token_sites(sample, "forward"), *previous_token_sites(sample, "backward")))

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network whose streams are not as wide as its token embedding."""
        _check_width(self, config)

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits of both streams at every position, through the token embedding and one bias."""
        from unmask.objectives.heads.common import BidirectionalLMHead

        return BidirectionalLMHead(backbone.token_embedding)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """Two for each position with a weight: its next token, and the token before that one."""
        return 2 * _num_next_tokens(instance)

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """The whole vocabulary at every position of both streams."""
        return ForwardCost(per_token=2 * lm_output_cost(config, vocab_size).per_prediction)


@dataclass(frozen=True, slots=True)
class PLM(Objective):
    """Tokens in a factorization order, each from those before it (XLNet)."""

    stream: str = "query"
    weight: float = 1.0
    has_head: ClassVar[bool] = False
    name: ClassVar[str] = "plm"
    target_type: ClassVar[type[Target]] = PermutedTarget
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Each ordered position predicts its own token, which is in the input: only the pattern hides it."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample), self.stream)))


def _num_next_tokens(instance: InputsAndTargets) -> int:
    found = (target.weights for target in instance.targets if isinstance(target, NextToken))
    return sum(int((weights > 0).sum()) for weights in found)


def _check_width(objective: Objective, config: NetworkConfig) -> None:
    if config.token_width != config.stream_width:
        raise RecipeError(
            f"{type(objective).__name__} multiplies states of {config.stream_width} numbers with a token embedding of "
            f"{config.token_width}. Set network.embedding_width=0."
        )
