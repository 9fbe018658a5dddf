"""How many parameters a network has, counted from its shape alone: no torch, so it can be told at once.

What arrives: a trunk, the size of a vocabulary, the number of positions. What leaves: an exact count.
What never happens here: a guess. The count is that of the network that `encoder.py` builds, shared ones once.
"""

from __future__ import annotations

from unmask.config.network import Activation, Norm, Positions, Sharing, TransformerConfig


def encoder_parameters(config: TransformerConfig, vocab_size: int, max_positions: int) -> int:
    """Embeddings and blocks, without any head."""
    attend = config.num_distinct_layers if config.is_shared(Sharing.ATTENTION) else config.depth
    feed = config.num_distinct_layers if config.is_shared(Sharing.FEED_FORWARD) else config.depth
    last = _norm(config.width) if config.norm is Norm.PRE else 0
    return (
        _embeddings(config, vocab_size, max_positions)
        + attend * _attention(config)
        + feed * _feed_forward(config)
        + last
    )


def pooler_parameters(config: TransformerConfig) -> int:
    """The layer over the first token that BERT's classes of a row are read from."""
    return _linear(config.width, config.width)


def _embeddings(trunk: TransformerConfig, vocabulary: int, positions: int) -> int:
    width = trunk.token_width
    places = positions + trunk.position_offset if trunk.positions is Positions.LEARNED else 0
    tables = (vocabulary + places + trunk.num_segments + trunk.num_tasks) * width
    norm = _norm(width) if trunk.norm is Norm.POST else 0
    return tables + norm + (_linear(width, trunk.width) if width != trunk.width else 0)


def _attention(trunk: TransformerConfig) -> int:
    """Queries, keys, values and what is made of them, with a norm."""
    return 4 * _linear(trunk.width, trunk.width) + _norm(trunk.width)


def _feed_forward(trunk: TransformerConfig) -> int:
    gates = 2 if trunk.activation is Activation.GEGLU else 1
    return _linear(trunk.width, gates * trunk.ffn_width) + _linear(trunk.ffn_width, trunk.width) + _norm(trunk.width)


def _linear(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def _norm(width: int) -> int:
    return 2 * width
