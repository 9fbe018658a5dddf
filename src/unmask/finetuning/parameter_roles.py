"""Where every parameter of a learner stands: in the embeddings, in a block, in a head, or beside the trunk.

What arrives: a learner. What leaves: one `Place` for each name of a parameter.
What never happens here: a name that is taken apart. Modules are asked which parameters they hold, so a parameter has
exactly one place: that of the first part in the order of `_walk` that holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torch import nn

    from unmask.train.multi_head_model import MultiHeadModel


class ParameterRole(StrEnum):
    """The parts of a learner, from the bottom up."""

    EMBED = "embeddings"
    BLOCK = "block"
    NORM = "norm"
    """A norm in the trunk: of a block, of the embeddings, or the last one."""
    ADDED = "added"
    """What a policy put into the trunk: adapters, low-rank updates."""
    MIX = "mix"
    """The weights of the layers."""
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class ParameterLocation:
    """Where a parameter stands."""

    role: ParameterRole
    level: int
    """How high: 0 for the embeddings, then the blocks from 1 on; heads and mixes stand one above the last block."""

    @property
    def is_above_encoder(self) -> bool:
        """Whether it stands on the trunk and not in it."""
        return self.role in (ParameterRole.MIX, ParameterRole.HEAD)


LocatedParameters: TypeAlias = "tuple[ParameterLocation, Iterable[nn.Parameter]]"


def locate_parameters(learner: MultiHeadModel) -> Mapping[str, ParameterLocation]:
    """The place of every parameter, by the name under which the learner lists it.

    What several blocks share (ALBERT) stands in the highest of them; a token embedding that a head reads, too, stands
    in the embeddings.
    """
    found: dict[nn.Parameter, ParameterLocation] = {}
    for place, parameters in _walk(learner):
        for parameter in parameters:
            found.setdefault(parameter, place)
    return {name: found[parameter] for name, parameter in learner.named_parameters()}


def top_level(learner: MultiHeadModel) -> int:
    """The level of the heads."""
    return len(learner.network.blocks()) + 1


def _walk(learner: MultiHeadModel) -> Iterator[LocatedParameters]:
    """Every part with its place; what stands inside another part comes before it."""
    trunk, top = learner.network, top_level(learner)
    yield from _norms(trunk.embed, 0)
    yield ParameterLocation(ParameterRole.EMBED, 0), trunk.embed.parameters()
    for level, block in reversed(list(enumerate(trunk.blocks(), start=1))):
        yield from ((ParameterLocation(ParameterRole.ADDED, level), added) for added in _added_modules(block))
        yield from _norms(block, level)
        yield ParameterLocation(ParameterRole.BLOCK, level), block.parameters()
    yield ParameterLocation(ParameterRole.NORM, top - 1), trunk.parameters()  # only the last norm is left
    yield ParameterLocation(ParameterRole.MIX, top), learner.layer_mix.parameters()
    yield ParameterLocation(ParameterRole.HEAD, top), learner.heads.parameters()


def _added_modules(block: nn.Module) -> Iterator[Iterable[nn.Parameter]]:
    """What a policy put into a block: what stands in the place for adapters, and what was wrapped around a layer."""
    from torch import nn

    from unmask.nets.layers.block import ResidualBranch

    for part in block.modules():
        if isinstance(part, ResidualBranch):
            yield part.adapter.parameters()
        wrapped = getattr(part, "base_layer", None)  # what peft calls the layer that an update stands beside
        if isinstance(wrapped, nn.Module):
            own = set(wrapped.parameters())
            yield [parameter for parameter in part.parameters() if parameter not in own]


def _norms(module: nn.Module, level: int) -> Iterator[LocatedParameters]:
    from torch import nn

    for part in module.modules():
        if isinstance(part, nn.LayerNorm | nn.RMSNorm):
            yield ParameterLocation(ParameterRole.NORM, level), part.parameters()
