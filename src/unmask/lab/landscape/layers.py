"""Which layers a fine-tune needs: how far each of them moved, and what is lost when some go back to the start.

What arrives: the weights at the start and at the end. What leaves: distances, and mixtures of the two.
What never happens here: knowing the names of parameters. Their places are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from torch import Tensor

from unmask.finetuning.parameter_roles import locate_parameters, top_level
from unmask.lab.landscape.weight_space import Weights, difference, l2_norm
from unmask.reports.landscape_results import LayerDistance
from unmask.train.multi_head_model import MultiHeadModel

PARTS = {1: (), 2: ("bottom", "top")}
"""What the parts of few blocks are called; more have three."""
THIRDS = ("bottom", "middle", "top")


def layer_distances(learner: MultiHeadModel, start: Weights, end: Weights) -> tuple[LayerDistance, ...]:
    """How far the embeddings, each block and the head moved."""
    way, levels, top = difference(end, start), _levels(learner), top_level(learner)
    found = []
    for level in range(top + 1):
        names = [name for name in way if levels[name] == level]
        if names:
            moved, size = (l2_norm({name: one[name] for name in names}) for one in (way, start))
            found.append(LayerDistance(_name(level, top), moved, size))
    return tuple(found)


def thirds(learner: MultiHeadModel) -> Iterator[tuple[str, frozenset[str]]]:
    """The parameters of the lowest, the middle and the highest third of the blocks; then of all blocks.

    Two blocks are two halves. A part that holds no parameters, because blocks share theirs, is passed over.
    """
    levels, top = _levels(learner), top_level(learner)
    words = PARTS.get(top - 1, THIRDS)
    for word, some in zip(words, np.array_split(np.arange(1, top), len(words)) if words else (), strict=True):
        names = _names_at(levels, some.tolist())
        if names:
            yield f"{word}: {_blocks(some.tolist())}", names
    yield "all blocks", _names_at(levels, range(1, top))


def roll_back(start: Weights, end: Weights, names: Collection[str]) -> dict[str, Tensor]:
    """The end, with some parameters as they were at the start."""
    return {name: start[name] if name in names else tensor for name, tensor in end.items()}


def _levels(learner: MultiHeadModel) -> dict[str, int]:
    return {name: place.level for name, place in locate_parameters(learner).items()}


def _names_at(levels: dict[str, int], wanted: Collection[int]) -> frozenset[str]:
    return frozenset(name for name, level in levels.items() if level in wanted)


def _name(level: int, top: int) -> str:
    return "embeddings" if level == 0 else "head" if level == top else f"block {level}"


def _blocks(some: list[int]) -> str:
    return f"block {some[0]}" if len(some) == 1 else f"blocks {some[0]} to {some[-1]}"
