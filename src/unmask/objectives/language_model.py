"""Language models in an order: the next token, the token before, or tokens in a drawn order.

What arrives: `NextToken` or `Ordering`. What leaves: a prediction for every position that has an answer.
What never happens here: a view under which the answer can be looked up; a task with such a view is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unmask.config.attention_pattern import RowCoordinates, next_token_sites, own_token_sites, previous_token_sites
from unmask.core.records import NextToken, PermutedTarget, Target
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions


@dataclass(frozen=True, slots=True)
class CLM(Objective):
    """Say the next token from what stands before it (GPT)."""

    weight: float = 1.0
    has_head: ClassVar[bool] = False
    name: ClassVar[str] = "clm"
    target_type: ClassVar[type[Target]] = NextToken
    """The next token."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Position i says token i + 1."""
        return PredictionSites(tuple(next_token_sites(sample)))


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
