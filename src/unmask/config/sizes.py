"""The published sizes of BERT, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Size:
    """Depth and width of a network."""

    depth: int
    width: int
    heads: int
    ffn_width: int
    """The hidden width of a feed-forward layer: four times the width in all published sizes."""


TINY = Size(depth=2, width=128, heads=2, ffn_width=512)
MINI = Size(depth=4, width=256, heads=4, ffn_width=1024)
SMALL = Size(depth=4, width=512, heads=8, ffn_width=2048)
MEDIUM = Size(depth=8, width=512, heads=8, ffn_width=2048)
BASE = Size(depth=12, width=768, heads=12, ffn_width=3072)
LARGE = Size(depth=24, width=1024, heads=16, ffn_width=4096)
SIZES: Mapping[str, Size] = MappingProxyType(
    {"tiny": TINY, "mini": MINI, "small": SMALL, "medium": MEDIUM, "base": BASE, "large": LARGE}
)
"""Base and large are from the paper (Devlin et al., 2018), the others from Turc et al. (2019)."""
