"""An encoder that goes on writing behind its source, one token at a time, without reading the source again.

What arrives: the states of sources that saw themselves alone; then one token for each text that is written behind one.
What leaves: the states of the newest tokens. What never happens here: a source that sees what is written behind it. So
its states never change, and what stands here equals a pass over all under a PREFIX sight.

Shapes: R texts that are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from unmask.nets.attention import Attention
from unmask.nets.kept import Kept
from unmask.nets.layout import Borders
from unmask.nets.transformer import States, Transformer


@dataclass(frozen=True, slots=True)
class Newest:
    """The last token of each text that is written."""

    ids_R: Tensor
    position_R: Tensor
    segment_R: Tensor


def remember(trunk: Transformer, states: States, borders: Borders) -> list[Kept]:
    """What each block keeps of its sources. `states` are those of the sources, one tensor before each block."""
    kept = []
    for block, x_TD in zip(trunk.blocks(), states.layers[:-1], strict=True):
        assert isinstance(block.attend.work, Attention)
        kept.append(Kept.of(block.attend.work.keys_values(block.attend.shown(x_TD)), borders))
    return kept


def go_on(trunk: Transformer, newest: Newest, kept: Sequence[Kept]) -> States:
    """The states of the newest tokens; what is kept grows by them."""
    x_RD: Tensor = trunk.embed(newest.ids_R, newest.position_R, newest.segment_R)
    layers = [x_RD]
    for block, memory in zip(trunk.blocks(), kept, strict=True):
        x_RD = block(x_RD, memory)
        layers.append(x_RD)
    layers[-1] = trunk.norm(x_RD)
    return States(tuple(layers))
