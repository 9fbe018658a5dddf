"""Settings of word vectors and of the table of similar words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class NeighbourSource(StrEnum):
    """The training method of word vectors."""

    SKIP_GRAM = "skip-gram"
    CBOW = "cbow"
    FASTTEXT = "fasttext"
    NONE = "none"
    """None: similar words come from a synonym file."""


@dataclass(frozen=True, slots=True)
class VectorConfig:
    """Settings of word vectors."""

    method: NeighbourSource = NeighbourSource.SKIP_GRAM
    dim: int = 100
    epochs: int = 5
    window: int = 5
    """Context words on each side."""
    seed: int = 1

    def describe(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableConfig:
    """Settings of the table."""

    min_count: int = 5
    """Rarer words get no vector."""
    num_neighbours: int = 10
    min_cosine: float = 0.4
    """The least cosine of a learned neighbor; synonyms of a file need none."""

    def describe(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)
