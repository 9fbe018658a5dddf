"""What the head of an objective costs.

What arrives: an objective and the trunk it stands on. What leaves: a `Cost`.
What never happens here: a head that is forgotten. An objective that nobody has counted is refused.
"""

from __future__ import annotations

from unmask.errors import RecipeError
from unmask.nets.flops import Cost, product, replaced_head_cost, row_head_cost, token_head_cost, trunk_cost
from unmask.nets.trunk import Trunk
from unmask.objectives.every import Every
from unmask.objectives.guess import Guess
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import SayTruth, Truth
from unmask.objectives.part import Objective
from unmask.objectives.replaced import Replaced
from unmask.objectives.sbo import SBO


def head_cost(objective: Objective, trunk: Trunk, vocabulary: int) -> Cost:
    """What an objective adds to the trunk in a forward pass."""
    match objective:
        case MLM():
            return token_head_cost(trunk, vocabulary)
        case SayTruth(truth):
            return row_head_cost(trunk, 3 if truth is Truth.PAIR else 2)
        case Guess():
            shape = objective.shape(trunk)  # a network of its own, which reads every row once more
            return trunk_cost(shape) + token_head_cost(shape, vocabulary)
        case Replaced():
            return replaced_head_cost(trunk)
        case Every():
            return token_head_cost(trunk, vocabulary) + Cost(answer=product(trunk.width, 1))
        case SBO():
            borders = product(2 * trunk.width + objective.positions, trunk.width)  # the rest is as in a cloze
            return token_head_cost(trunk, vocabulary) + Cost(answer=borders)
    raise RecipeError(
        f"Nobody has said what {type(objective).__name__} costs, so its FLOPs cannot be counted. Give the budget in "
        "steps, tokens or hours."
    )
