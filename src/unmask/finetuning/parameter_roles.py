"""The role and the level of every parameter: embeddings, blocks, norms, added modules, layer mix and heads.

Fine-tuning methods choose learning rates by role and level. A parameter belongs to the first module in the order of
`_walk` that holds it; names are not parsed.
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
    """The role of a parameter, from the bottom up."""

    EMBED = "embeddings"
    BLOCK = "block"
    NORM = "norm"
    """A norm of the encoder: of a block, of the embeddings, or the last one."""
    ADDED = "added"
    """Modules added by a method: adapters, LoRA updates."""
    MIX = "mix"
    """The layer weights of a scalar mix."""
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class ParameterLocation:
    """The role and the level of a parameter."""

    role: ParameterRole
    level: int
    """0 for the embeddings, then the blocks from 1 on; heads and scalar mix are one above the last block."""

    @property
    def is_above_encoder(self) -> bool:
        """Whether it belongs to a head or the scalar mix, not to the encoder."""
        return self.role in (ParameterRole.MIX, ParameterRole.HEAD)


LocatedParameters: TypeAlias = "tuple[ParameterLocation, Iterable[nn.Parameter]]"


def locate_parameters(learner: MultiHeadModel) -> Mapping[str, ParameterLocation]:
    """The location of every parameter by name.

    Parameters that blocks share (ALBERT) belong to the highest block; a tied token embedding belongs to the embeddings.
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
    """Every module with its location; inner modules come before outer ones."""
    encoder, top = learner.network, top_level(learner)
    yield from _norms(encoder.embed, 0)
    yield ParameterLocation(ParameterRole.EMBED, 0), encoder.embed.parameters()
    for level, block in reversed(list(enumerate(encoder.blocks(), start=1))):
        yield from ((ParameterLocation(ParameterRole.ADDED, level), added) for added in _added_modules(block))
        yield from _norms(block, level)
        yield ParameterLocation(ParameterRole.BLOCK, level), block.parameters()
    yield ParameterLocation(ParameterRole.NORM, top - 1), encoder.parameters()  # only the last norm is left
    yield ParameterLocation(ParameterRole.MIX, top), learner.layer_mix.parameters()
    yield ParameterLocation(ParameterRole.HEAD, top), learner.heads.parameters()


def _added_modules(block: nn.Module) -> Iterator[Iterable[nn.Parameter]]:
    """The modules that a method added to a block: adapters, and LoRA updates around linear layers."""
    from torch import nn

    from unmask.nets.layers.block import ResidualBranch

    for part in block.modules():
        if isinstance(part, ResidualBranch):
            yield part.adapter.parameters()
        wrapped = getattr(part, "base_layer", None)  # the name in peft of the layer under a LoRA update
        if isinstance(wrapped, nn.Module):
            own = set(wrapped.parameters())
            yield [parameter for parameter in part.parameters() if parameter not in own]


def _norms(module: nn.Module, level: int) -> Iterator[LocatedParameters]:
    from torch import nn

    for part in module.modules():
        if isinstance(part, nn.LayerNorm | nn.RMSNorm):
            yield ParameterLocation(ParameterRole.NORM, level), part.parameters()
