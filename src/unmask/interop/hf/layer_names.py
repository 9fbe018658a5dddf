"""How a dialect names and counts its layers: each by itself, or in groups that share weights.

What arrives: the shape of a trunk. What leaves: lines of the name table, and settings; and back.
What never happens here: embeddings and heads; see `weight_names.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from unmask.config.network import Sharing, TransformerConfig
from unmask.core.errors import InputError
from unmask.interop.hf.weight_table import Renamed, Stacked, WeightMapping

ENDS = ("weight", "bias")
Names = Mapping[str, str]


class LayerNames(Protocol):
    """The layers of a dialect."""

    def expressible(self, trunk: TransformerConfig) -> TransformerConfig:
        """The trunk as its settings can say it: what cannot be shared there is not shared."""

    def mappings(self, trunk: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """The lines of the table for all layers of a trunk that was written so."""

    def to_config(self, trunk: TransformerConfig) -> dict[str, Any]:
        """The settings that count the layers."""

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """What the counts in settings mean for a trunk."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The settings that `hear` needs, with the value of each where it is left out; 0 where it may not be."""


def without_sharing(trunk: TransformerConfig) -> TransformerConfig:
    """The same trunk with weights of its own in every layer."""
    return replace(trunk, sharing=Sharing.NONE, share_groups=1, layers_per_group=1)


@dataclass(frozen=True, slots=True)
class PerLayer:
    """Every layer has weights of its own, under BERT's names."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Only the depth."""
        return {"num_hidden_layers": 0}

    def expressible(self, trunk: TransformerConfig) -> TransformerConfig:
        """Nothing is shared."""
        return without_sharing(trunk)

    def mappings(self, trunk: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """One layer after the other."""
        names = {
            "qkv": "attention.self.",
            "out": "attention.output.dense",
            "attend": "attention.output.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "feed": "output.LayerNorm",
        }
        for number in range(trunk.depth):
            yield from _layer((number,), f"{prefix}encoder.layer.{number}", names)

    def to_config(self, trunk: TransformerConfig) -> dict[str, Any]:
        """How many there are."""
        return {"num_hidden_layers": trunk.depth}

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """As many layers."""
        return {"depth": counts["num_hidden_layers"]}


@dataclass(frozen=True, slots=True)
class SharedGroups:
    """ALBERT's layers: groups that share all weights, each of one or more inner layers that take turns."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Passes through a group, groups, and the layers inside one."""
        return {"num_hidden_layers": 0, "num_hidden_groups": 1, "inner_group_num": 1}

    def expressible(self, trunk: TransformerConfig) -> TransformerConfig:
        """All is shared, or nothing: there is no name for attention that is shared alone."""
        return trunk if trunk.sharing is Sharing.ALL else without_sharing(trunk)

    def mappings(self, trunk: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """One set of weights after the other, each at every depth where it stands."""
        names = {
            "qkv": "attention.",
            "out": "attention.dense",
            "attend": "attention.LayerNorm",
            "up": "ffn",
            "down": "ffn_output",
            "feed": "full_layer_layer_norm",
        }
        for turn in range(trunk.num_distinct_layers):
            layers = tuple(depth for depth, one in enumerate(trunk.layer_of_depth) if one == turn)
            group, inner = divmod(turn, trunk.layers_per_group)
            yield from _layer(layers, f"{prefix}encoder.albert_layer_groups.{group}.albert_layers.{inner}", names)

    def to_config(self, trunk: TransformerConfig) -> dict[str, Any]:
        """Layers that share nothing are groups of one layer."""
        return {
            "num_hidden_layers": trunk.depth // trunk.layers_per_group,
            "num_hidden_groups": trunk.num_distinct_layers // trunk.layers_per_group,
            "inner_group_num": trunk.layers_per_group,
        }

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """Groups of one layer, as many as the trunk is deep, share nothing."""
        passes, groups, inner = (counts[name] for name in self.counts)
        if passes % groups:
            raise InputError(
                f"config.json parts {passes} layers into {groups} groups of unequal size, which cannot be read."
            )
        if inner == 1 and groups == passes > 1:
            return {"depth": passes}
        return {"depth": passes * inner, "sharing": Sharing.ALL, "share_groups": groups, "layers_per_group": inner}


def _layer(depths: tuple[int, ...], theirs: str, names: Names) -> Iterator[WeightMapping]:
    """One set of weights, which stands at these depths."""
    ours = {
        "out": "attention.sublayer.out",
        "attend": "attention.norm",
        "up": "ffn.sublayer.up",
        "down": "ffn.sublayer.down",
        "feed": "ffn.norm",
    }
    for end in ENDS:
        tall = tuple(f"network.layers.{depth}.attention.sublayer.qkv.{end}" for depth in depths)
        parts = tuple(f"{theirs}.{names['qkv']}{part}.{end}" for part in ("query", "key", "value"))
        yield Stacked(tall, parts)
    for part, layer in ours.items():
        for end in ENDS:
            yield Renamed(
                tuple(f"network.layers.{depth}.{layer}.{end}" for depth in depths), (f"{theirs}.{names[part]}.{end}",)
            )
