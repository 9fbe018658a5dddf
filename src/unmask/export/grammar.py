"""The grammar of a dialect: what its classes call every weight, and what its settings can say.

What arrives: the names of one dialect. What leaves: a value that tables and settings are made from.
What never happens here: a dialect itself; each has a file of its own, and `dialects.py` has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from unmask.dialect import Dialect
from unmask.export.architecture import Purpose, family
from unmask.export.stack import Stack
from unmask.nets.trunk import Activation, Norm, Positions, Trunk

SAYS = {Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_new", Activation.RELU: "relu"}
"""What settings call an activation."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands on the trunk: the head for tokens, and layers by our name and theirs."""

    tokens: bool = False
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class TokenNames:
    """What a dialect calls the head for tokens. A tied weight has several names, the first of which is written."""

    dense: str
    norm: str
    bias: tuple[str, ...]
    output: tuple[str, ...]
    """Further names of the token embedding, as output matrix."""


@dataclass(frozen=True, slots=True)
class Projection:
    """How a dialect takes narrow embeddings to the width of the trunk."""

    layer: str = ""
    """What it calls the layer; empty where it has none."""
    always: bool = False
    """Whether there is a layer even where the widths are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """All that one dialect differs in."""

    dialect: Dialect
    classes: Mapping[Purpose, Parts]
    """What each of its classes has on the trunk."""
    tokens: TokenNames
    stack: Stack
    """How it names and counts its layers."""
    projection: Projection = Projection()
    after_pad: bool = False
    """Whether positions are numbered from the id of padding on (RoBERTa), and not from 0."""
    pooled: Activation = Activation.TANH
    """The non-linearity over the first token, before the classes of a row."""
    token_bend: tuple[Activation, ...] = ()
    """The non-linearity of the head for tokens where it is always the same; else it is that of the layers."""
    fixed: Mapping[str, Any]
    """Settings that must have this value where they are given."""
    usual: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The values of settings that a file may leave out, where they are not BERT's."""
    row_logits: str = "seq_relationship_logits"
    """What it calls the classes of a row that were learned in pre-training."""

    @property
    def prefix(self) -> str:
        """What the names of the trunk begin with where heads stand on it; a bare encoder does without."""
        return f"{self.dialect.value}."

    @property
    def name(self) -> str:
        """What messages call it."""
        return "BERT" if self.dialect is Dialect.BERT else family(self.dialect)

    def beyond(self, trunk: Trunk, parts: Parts) -> list[str]:
        """What a trunk has that this dialect cannot say, in a few words each."""
        first = trunk.first_position
        cannot = {
            "pre-norm blocks": trunk.norm is not Norm.POST,
            "positions that are not learned": trunk.positions is not Positions.LEARNED,
            "a factorised embedding": trunk.token_width != trunk.width and not self.projection.layer,
            "task embeddings": trunk.tasks > 0,
            "no segment embedding": trunk.segments < 1,
            f"positions that begin with number {first}": (first > 0) is not self.after_pad,
            f"{trunk.activation.value} activation": trunk.activation not in SAYS,
            f"a pooler with {trunk.pooled.value}": trunk.pooled is not self.pooled,
            f"a head for tokens with {trunk.activation.value}": (
                parts.tokens and bool(self.token_bend) and trunk.activation not in self.token_bend
            ),
        }
        return [what for what, is_so in cannot.items() if is_so]
