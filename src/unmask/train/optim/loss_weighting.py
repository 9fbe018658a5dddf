"""How the losses of a step are weighed: by fixed weights, or by weights that are learned with the network.

What arrives: the objectives of a step. What leaves: a weight for the mean loss of each, and the price of the weights.
What never happens here: a loss. Sums, counts and divisions are the step's business.

Learned weights are those of Kendall, Gal and Cipolla (2018): each objective has an uncertainty s, and what is minimised
is the sum of exp(-s) * loss + s / 2. Without the price s / 2 the best weight would be none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from unmask.config.optim import LossWeighting
from unmask.core.errors import RecipeError
from unmask.objectives.heads.common import LossSum
from unmask.objectives.protocol import Objective


class FixedWeights(nn.Module):
    """The weights that the objectives bring along."""

    def forward(self, terms: tuple[LossSum, ...], objectives: Sequence[Objective]) -> tuple[LossSum, ...]:
        """The terms as they are."""
        return terms

    def weights(self, objectives: Sequence[Objective]) -> Sequence[float]:
        """One for each objective."""
        return [one.weight for one in objectives]

    def regularizer(self, objectives: Sequence[Objective]) -> float:
        """What is fixed costs nothing."""
        return 0.0

    def current_weights(self, objectives: Sequence[Objective]) -> Tensor:
        """None of them."""
        return torch.zeros(0)


class UncertaintyWeights(nn.Module):
    """Weights that begin as the objectives bring them and are learned from there.

    Kept is how far each s has moved from where it began, so that zeros are the beginning, as for any bias.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        super().__init__()
        for one in objectives:
            if one.weight <= 0:
                raise RecipeError(
                    f"A learned balance begins with the weights of the objectives, so they must be above 0; found "
                    f"{one.weight:g} for '{one.name}'. Give it a weight, or take loss_weighting=fixed."
                )
        self.moved = nn.ParameterDict({one.name: nn.Parameter(torch.zeros(())) for one in objectives})

    def forward(self, terms: tuple[LossSum, ...], objectives: Sequence[Objective]) -> tuple[LossSum, ...]:
        """The terms as they are, with their weights in their graph.

        Processes that share a network look there for the parameters that a step uses.
        """
        pairs = zip(terms, objectives, strict=True)
        return tuple(replace(term, total=term.total + 0.0 * self.moved[one.name]) for term, one in pairs)

    def weights(self, objectives: Sequence[Objective]) -> Sequence[Tensor]:
        """One for each objective: exp(-s)."""
        return [one.weight * torch.exp(-self.moved[one.name]) for one in objectives]

    def regularizer(self, objectives: Sequence[Objective]) -> Tensor:
        """The sum of s / 2 over the objectives that were asked anything. It belongs to a step, not to an answer."""
        return torch.stack([self.moved[one.name] - math.log(one.weight) for one in objectives]).sum() / 2

    def current_weights(self, objectives: Sequence[Objective]) -> Tensor:
        """The weights now, on the device."""
        return torch.stack(list(self.weights(objectives))).detach()


def build_loss_weighting(
    weighting: LossWeighting, objectives: Sequence[Objective]
) -> FixedWeights | UncertaintyWeights:
    """The module for a choice of a recipe."""
    return UncertaintyWeights(objectives) if weighting is LossWeighting.LEARNED else FixedWeights()
