"""FLOPs of a network: the floating point operations of its matrix products, by arithmetic without torch.

Norms, softmax, dropout, non-linearities, look-ups in embeddings and biases are left out: a few per cent for a width of
256 and more. A row of n numbers times a matrix of n x m costs 2 n m: a product and a sum for each entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.config.network import Activation, NetworkValues, TransformerConfig

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
    """For each pair of a query and a key: the squares of the sequence lengths, summed."""
    per_prediction: int = 0
    """For each prediction."""
    per_cross_pair: int = 0
    """For each pair of a query at a predicted position and a key."""

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
    attention = matmul_flops(config.width, 3 * config.qkv_width) + matmul_flops(config.qkv_width, config.width)
    project = matmul_flops(config.token_width, config.width) if config.token_width != config.width else 0
    return ForwardCost(
        per_token=config.depth * (attention + _ffn_flops(config)) + project,
        per_pair=config.depth * _pair_flops(config),
    )


def decoder_cost(config: TransformerConfig, source_width: int, vocab_size: int) -> ForwardCost:
    """A decoder and its logits, by tokens of target and source; pairs are those of self- and cross-attention."""
    own = encoder_cost(config).per_token + 2 * config.depth * matmul_flops(config.width, config.qkv_width)
    source = config.depth * matmul_flops(source_width, 2 * config.qkv_width)
    pairs = config.depth * _pair_flops(config)
    return ForwardCost(per_token=source, per_prediction=own, per_cross_pair=pairs) + lm_output_cost(config, vocab_size)


def sparse_last_block_saving(config: TransformerConfig) -> ForwardCost:
    """What a last block costs less that computes all but keys and values at predicted positions alone.

    Budgets ignore it: they compare networks, not implementations.
    """
    late = matmul_flops(config.width, config.qkv_width) + matmul_flops(config.qkv_width, config.width)
    late += _ffn_flops(config)
    return ForwardCost(
        per_token=-late, per_pair=-_pair_flops(config), per_prediction=late, per_cross_pair=_pair_flops(config)
    )


def _pair_flops(config: TransformerConfig) -> int:
    """A query and a key of all heads: the product for the score, and the weighted sum of values."""
    return 2 * matmul_flops(1, config.qkv_width)


def _ffn_flops(config: TransformerConfig) -> int:
    gates = 2 if config.activation is Activation.GEGLU else 1
    return matmul_flops(config.width, gates * config.ffn_width) + matmul_flops(config.ffn_width, config.width)


def lm_output_cost(config: NetworkValues, vocab_size: int) -> ForwardCost:
    """Logits over the vocabulary for one prediction."""
    return ForwardCost(per_prediction=matmul_flops(config.token_width, vocab_size))


def lm_head_cost(config: NetworkValues, vocab_size: int) -> ForwardCost:
    """One predicted token: a layer, then the whole vocabulary."""
    layer = ForwardCost(per_prediction=matmul_flops(config.width, config.token_width))
    return layer + lm_output_cost(config, vocab_size)


def row_head_cost(config: NetworkValues, classes: int) -> ForwardCost:
    """One row classified by its first token: the pooler, then the classes."""
    return ForwardCost(per_prediction=matmul_flops(config.width, config.width) + matmul_flops(config.width, classes))


def discriminator_head_cost(config: NetworkValues) -> ForwardCost:
    """One token classified: a layer, then one number."""
    return ForwardCost(per_prediction=matmul_flops(config.width, config.width) + matmul_flops(config.width, 1))
