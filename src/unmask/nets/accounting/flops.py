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

from unmask.config.network import Activation, TransformerConfig

BACKWARD = 2
"""A backward pass costs two forward passes: each product has a gradient for either of its factors."""
STEP = 1 + BACKWARD
"""A step, in forward passes."""


@dataclass(frozen=True, slots=True)
class ForwardCost:
    """What a forward pass costs, by what it grows with."""

    per_token: int = 0
    """For each token."""
    per_pair: int = 0
    """For each pair of tokens of which one looks at the other: the squares of the rows' lengths, summed."""
    per_prediction: int = 0
    """For each answer that is given."""
    per_cross_pair: int = 0
    """For each pair of which the one that looks is asked for an answer."""

    def __add__(self, other: ForwardCost) -> ForwardCost:
        token, pair = self.per_token + other.per_token, self.per_pair + other.per_pair
        return ForwardCost(
            token, pair, self.per_prediction + other.per_prediction, self.per_cross_pair + other.per_cross_pair
        )

    def forward(self, tokens: float, pairs: float, predictions: float = 0.0, cross_pairs: float = 0.0) -> float:
        """The cost of a forward pass."""
        return (
            self.per_token * tokens
            + self.per_pair * pairs
            + self.per_prediction * predictions
            + self.per_cross_pair * cross_pairs
        )


def matmul_flops(inputs: int, outputs: int) -> int:
    """One row times a matrix."""
    return 2 * inputs * outputs


def encoder_cost(config: TransformerConfig) -> ForwardCost:
    """All blocks, and the projection of a narrow embedding. Sharing parameters saves no work."""
    attend = matmul_flops(config.width, 3 * config.width) + matmul_flops(config.width, config.width)
    project = matmul_flops(config.token_width, config.width) if config.token_width != config.width else 0
    return ForwardCost(
        per_token=config.depth * (attend + _ffn_flops(config)) + project, per_pair=config.depth * _pair_flops(config)
    )


def sparse_last_block_saving(config: TransformerConfig) -> ForwardCost:
    """To be added to a trunk whose last block is computed only where answers are given, but for keys and values.

    Budgets do without it: they compare networks, whoever computes them.
    """
    queries = matmul_flops(config.width, config.width)
    late = queries + matmul_flops(config.width, config.width) + _ffn_flops(config)
    return ForwardCost(
        per_token=-late, per_pair=-_pair_flops(config), per_prediction=late, per_cross_pair=_pair_flops(config)
    )


def _pair_flops(trunk: TransformerConfig) -> int:
    """A pair of tokens meets twice, over the whole width: once for its score, once when values are summed."""
    return 2 * matmul_flops(1, trunk.width)


def _ffn_flops(trunk: TransformerConfig) -> int:
    gates = 2 if trunk.activation is Activation.GEGLU else 1
    return matmul_flops(trunk.width, gates * trunk.ffn_width) + matmul_flops(trunk.ffn_width, trunk.width)


def lm_head_cost(config: TransformerConfig, vocab_size: int) -> ForwardCost:
    """One token said at one position: a layer, then the whole vocabulary."""
    return ForwardCost(
        per_prediction=matmul_flops(config.width, config.token_width) + matmul_flops(config.token_width, vocab_size)
    )


def row_head_cost(config: TransformerConfig, classes: int) -> ForwardCost:
    """One row judged by its first token: the pooler, then the classes."""
    return ForwardCost(per_prediction=matmul_flops(config.width, config.width) + matmul_flops(config.width, classes))


def discriminator_head_cost(config: TransformerConfig) -> ForwardCost:
    """One token judged: a layer, then one number."""
    return ForwardCost(per_prediction=matmul_flops(config.width, config.width) + matmul_flops(config.width, 1))
