"""Names and numbers of layers by model type: independent layers (BERT), or groups with shared weights (ALBERT)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from unmask.config.network import Sharing, TransformerConfig
from unmask.core.errors import InputError
from unmask.interop.hf.weight_table import Renamed, Stacked, WeightMapping

SUFFIXES = ("weight", "bias")
Names = Mapping[str, str]


class LayerNames(Protocol):
    """How a model type names and counts its layers."""

    def expressible(self, network: TransformerConfig) -> TransformerConfig:
        """The configuration with only the sharing that the settings can express."""

    def mappings(self, network: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """The weight mappings of all layers of an expressible configuration."""

    def to_config(self, network: TransformerConfig) -> dict[str, Any]:
        """The settings for the number of layers."""

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """Fields of `TransformerConfig` from these settings."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The settings that `from_config` reads, with their defaults; 0 if required."""


def without_sharing(network: TransformerConfig) -> TransformerConfig:
    """The same configuration with independent layers."""
    return replace(network, sharing=Sharing.NONE, share_groups=1, layers_per_group=1)


@dataclass(frozen=True, slots=True)
class PerLayer:
    """Independent layers under BERT's names."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The depth."""
        return {"num_hidden_layers": 0}

    def expressible(self, network: TransformerConfig) -> TransformerConfig:
        """Without sharing."""
        return without_sharing(network)

    def mappings(self, network: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """The mappings layer by layer."""
        names = {
            "qkv": "attention.self.",
            "out": "attention.output.dense",
            "attend": "attention.output.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "feed": "output.LayerNorm",
        }
        for number in range(network.depth):
            yield from _layer((number,), f"{prefix}encoder.layer.{number}", names)

    def to_config(self, network: TransformerConfig) -> dict[str, Any]:
        """The depth."""
        return {"num_hidden_layers": network.depth}

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """The depth."""
        return {"depth": counts["num_hidden_layers"]}


@dataclass(frozen=True, slots=True)
class SharedGroups:
    """ALBERT's layers: groups with shared weights, each of one or more inner layers in turn."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Passes through the groups, the number of groups, and inner layers per group."""
        return {"num_hidden_layers": 0, "num_hidden_groups": 1, "inner_group_num": 1}

    def expressible(self, network: TransformerConfig) -> TransformerConfig:
        """Everything is shared, or nothing; attention alone cannot be shared."""
        return network if network.sharing is Sharing.ALL else without_sharing(network)

    def mappings(self, network: TransformerConfig, prefix: str) -> Iterator[WeightMapping]:
        """The mappings of each set of weights, at every depth that uses it."""
        names = {
            "qkv": "attention.",
            "out": "attention.dense",
            "attend": "attention.LayerNorm",
            "up": "ffn",
            "down": "ffn_output",
            "feed": "full_layer_layer_norm",
        }
        for turn in range(network.num_distinct_layers):
            layers = tuple(depth for depth, one in enumerate(network.layer_of_depth) if one == turn)
            group, inner = divmod(turn, network.layers_per_group)
            yield from _layer(layers, f"{prefix}encoder.albert_layer_groups.{group}.albert_layers.{inner}", names)

    def to_config(self, network: TransformerConfig) -> dict[str, Any]:
        """Independent layers are groups of one layer."""
        return {
            "num_hidden_layers": network.depth // network.layers_per_group,
            "num_hidden_groups": network.num_distinct_layers // network.layers_per_group,
            "inner_group_num": network.layers_per_group,
        }

    def from_config(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """As many groups of one layer as the depth are independent layers."""
        passes, groups, inner = (counts[name] for name in self.counts)
        if passes % groups:
            raise InputError(
                f"config.json divides {passes} layers into {groups} groups of unequal size, which cannot be read. Take "
                "another network."
            )
        if inner == 1 and groups == passes > 1:
            return {"depth": passes}
        return {"depth": passes * inner, "sharing": Sharing.ALL, "share_groups": groups, "layers_per_group": inner}


def _layer(depths: tuple[int, ...], theirs: str, names: Names) -> Iterator[WeightMapping]:
    """The mappings of one set of weights, used at these depths."""
    ours = {
        "out": "attention.sublayer.out",
        "attend": "attention.norm",
        "up": "ffn.sublayer.up",
        "down": "ffn.sublayer.down",
        "feed": "ffn.norm",
    }
    for suffix in SUFFIXES:
        stacked = tuple(f"network.layers.{depth}.attention.sublayer.qkv.{suffix}" for depth in depths)
        parts = tuple(f"{theirs}.{names['qkv']}{part}.{suffix}" for part in ("query", "key", "value"))
        yield Stacked(stacked, parts)
    for part, layer in ours.items():
        for suffix in SUFFIXES:
            yield Renamed(
                tuple(f"network.layers.{depth}.{layer}.{suffix}" for depth in depths),
                (f"{theirs}.{names[part]}.{suffix}",),
            )
