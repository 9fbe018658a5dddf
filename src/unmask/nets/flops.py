"""What a network computes, counted: floating point operations of its matrix products, by arithmetic alone.

What arrives: the shape of a trunk, how many classes a head has. What leaves: a `Cost`, which knows what a forward pass
costs for so many tokens, pairs of tokens and answers.
What never happens here: torch, or a guess. Left out is everything that is no matrix product: norms, softmax, dropout,
non-linearities, look-ups in embeddings, biases, and the move of the weights. For a width of 256 and more that is a few
per cent.

A product of a row of n numbers with a matrix of n x m costs 2 n m: a product and a sum for each entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.nets.trunk import Activation, Trunk

BACKWARD = 2
"""A backward pass costs two forward passes: each product has a gradient for either of its factors."""
STEP = 1 + BACKWARD
"""A step, in forward passes."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a forward pass costs, by what it grows with."""

    token: int = 0
    """For each token."""
    pair: int = 0
    """For each pair of tokens of which one looks at the other: the squares of the rows' lengths, summed."""
    answer: int = 0
    """For each answer that is given."""
    look: int = 0
    """For each pair of which the one that looks is asked for an answer."""

    def __add__(self, other: Cost) -> Cost:
        token, pair = self.token + other.token, self.pair + other.pair
        return Cost(token, pair, self.answer + other.answer, self.look + other.look)

    def forward(self, tokens: float, pairs: float, answers: float = 0.0, looks: float = 0.0) -> float:
        """The cost of a forward pass."""
        return self.token * tokens + self.pair * pairs + self.answer * answers + self.look * looks


def product(inputs: int, outputs: int) -> int:
    """One row times a matrix."""
    return 2 * inputs * outputs


def trunk_cost(trunk: Trunk) -> Cost:
    """All blocks, and the projection of a narrow embedding. Sharing parameters saves no work."""
    attend = product(trunk.width, 3 * trunk.width) + product(trunk.width, trunk.width)
    project = product(trunk.token_width, trunk.width) if trunk.token_width != trunk.width else 0
    return Cost(token=trunk.depth * (attend + _feed(trunk)) + project, pair=trunk.depth * _meet(trunk))


def spared_cost(trunk: Trunk) -> Cost:
    """To be added to a trunk whose last block is computed only where answers are given, but for keys and values.

    Budgets do without it: they compare networks, whoever computes them.
    """
    queries = product(trunk.width, trunk.width)
    late = queries + product(trunk.width, trunk.width) + _feed(trunk)
    return Cost(token=-late, pair=-_meet(trunk), answer=late, look=_meet(trunk))


def _meet(trunk: Trunk) -> int:
    """A pair of tokens meets twice, over the whole width: once for its score, once when values are summed."""
    return 2 * product(1, trunk.width)


def _feed(trunk: Trunk) -> int:
    gates = 2 if trunk.activation is Activation.GATED else 1
    return product(trunk.width, gates * trunk.inner) + product(trunk.inner, trunk.width)


def token_head_cost(trunk: Trunk, vocabulary: int) -> Cost:
    """One token said at one position: a layer, then the whole vocabulary."""
    return Cost(answer=product(trunk.width, trunk.token_width) + product(trunk.token_width, vocabulary))


def row_head_cost(trunk: Trunk, classes: int) -> Cost:
    """One row judged by its first token: the pooler, then the classes."""
    return Cost(answer=product(trunk.width, trunk.width) + product(trunk.width, classes))


def replaced_head_cost(trunk: Trunk) -> Cost:
    """One token judged: a layer, then one number."""
    return Cost(answer=product(trunk.width, trunk.width) + product(trunk.width, 1))
