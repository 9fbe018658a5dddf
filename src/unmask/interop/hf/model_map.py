"""The grammar of a dialect: what its classes call every weight, and what its settings can say.

What arrives: the names of one dialect. What leaves: a value that tables and settings are made from.
What never happens here: a dialect itself; each has a file of its own, and `lookup.py` has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Norm, NormKind, Positions, TransformerConfig
from unmask.interop.hf.architecture import HFTask, class_prefix
from unmask.interop.hf.layer_names import LayerNames

ACTIVATION_NAMES = {Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_new", Activation.RELU: "relu"}
"""What settings call an activation."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands on the trunk: the head for tokens, and layers by our name and theirs."""

    has_lm_head: bool = False
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class LMHeadNames:
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
class ModelMap:
    """All that one dialect differs in."""

    model_type: ModelType
    heads_by_task: Mapping[HFTask, Parts]
    """What each of its classes has on the trunk."""
    lm_head_names: LMHeadNames
    layer_names: LayerNames
    """How it names and counts its layers."""
    projection: Projection = Projection()
    positions_after_pad: bool = False
    """Whether positions are numbered from the id of padding on (RoBERTa), and not from 0."""
    pooler_activation: Activation = Activation.TANH
    """The non-linearity over the first token, before the classes of a row."""
    lm_head_activations: tuple[Activation, ...] = ()
    """The non-linearity of the head for tokens where it is always the same; else it is that of the layers."""
    fixed_config: Mapping[str, Any]
    """Settings that must have this value where they are given."""
    default_config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The values of settings that a file may leave out, where they are not BERT's."""
    row_logits: str = "seq_relationship_logits"
    """What it calls the classes of a row that were learned in pre-training."""

    @property
    def prefix(self) -> str:
        """What the names of the trunk begin with where heads stand on it; a bare encoder does without."""
        return f"{self.model_type.value}."

    @property
    def name(self) -> str:
        """What messages call it."""
        return "BERT" if self.model_type is ModelType.BERT else class_prefix(self.model_type)

    def inexpressible(self, trunk: TransformerConfig, parts: Parts) -> list[str]:
        """What a trunk has that this dialect cannot say, in a few words each."""
        first = trunk.position_offset
        cannot = {
            "pre-norm blocks": trunk.norm is not Norm.POST,
            "positions that are not learned": trunk.positions is not Positions.LEARNED,
            "a factorised embedding": trunk.token_width != trunk.width and not self.projection.layer,
            "task embeddings": trunk.num_tasks > 0,
            "RMSNorm": trunk.norm_kind is not NormKind.LAYER,
            "linear layers without a bias": not trunk.bias,
            "attention without a scale": not trunk.scale_attention,
            f"heads of width {trunk.head_width}": trunk.qkv_width != trunk.width,
            "no segment embedding": trunk.num_segments < 1,
            f"positions that begin with number {first}": (first > 0) is not self.positions_after_pad,
            f"{trunk.activation.value} activation": trunk.activation not in ACTIVATION_NAMES,
            f"a pooler with {trunk.pooler_activation.value}": trunk.pooler_activation is not self.pooler_activation,
            f"a head for tokens with {trunk.activation.value}": (
                parts.has_lm_head
                and bool(self.lm_head_activations)
                and trunk.activation not in self.lm_head_activations
            ),
        }
        return [what for what, is_so in cannot.items() if is_so]
