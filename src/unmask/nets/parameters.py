"""How many parameters a network has, counted from its shape alone: no torch, so it can be told at once.

What arrives: a trunk, the size of a vocabulary, the number of positions. What leaves: an exact count.
What never happens here: a guess. The count is that of the network that `transformer.py` builds, shared ones once.
"""

from __future__ import annotations

from unmask.nets.trunk import Activation, Norm, Positions, Sharing, Trunk


def trunk_parameters(trunk: Trunk, vocabulary: int, positions: int) -> int:
    """Embeddings and blocks, without any head."""
    attend = trunk.sets if trunk.shares(Sharing.ATTENTION) else trunk.depth
    feed = trunk.sets if trunk.shares(Sharing.FEED_FORWARD) else trunk.depth
    last = _norm(trunk.width) if trunk.norm is Norm.PRE else 0
    return _embeddings(trunk, vocabulary, positions) + attend * _attention(trunk) + feed * _feed_forward(trunk) + last


def pooler_parameters(trunk: Trunk) -> int:
    """The layer over the first token that BERT's classes of a row are read from."""
    return _linear(trunk.width, trunk.width)


def _embeddings(trunk: Trunk, vocabulary: int, positions: int) -> int:
    width = trunk.token_width
    places = positions + trunk.first_position if trunk.positions is Positions.LEARNED else 0
    tables = (vocabulary + places + trunk.segments + trunk.tasks) * width
    norm = _norm(width) if trunk.norm is Norm.POST else 0
    return tables + norm + (_linear(width, trunk.width) if width != trunk.width else 0)


def _attention(trunk: Trunk) -> int:
    """Queries, keys, values and what is made of them, with a norm."""
    return 4 * _linear(trunk.width, trunk.width) + _norm(trunk.width)


def _feed_forward(trunk: Trunk) -> int:
    gates = 2 if trunk.activation is Activation.GATED else 1
    return _linear(trunk.width, gates * trunk.inner) + _linear(trunk.inner, trunk.width) + _norm(trunk.width)


def _linear(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def _norm(width: int) -> int:
    return 2 * width
