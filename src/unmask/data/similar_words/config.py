"""What a user may choose about similar words.

What arrives: numbers. What leaves: two small records, and their lines for `table.json`.
What never happens here: importing anything heavy, so that `--help` stays quick.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class NeighbourSource(StrEnum):
    """How neighbours are learned."""

    SKIP_GRAM = "skip-gram"
    CBOW = "cbow"
    FASTTEXT = "fasttext"
    NONE = "none"
    """Not at all: a synonym file says which words are similar."""


@dataclass(frozen=True, slots=True)
class VectorConfig:
    """Everything that decides the vectors of a corpus."""

    method: NeighbourSource = NeighbourSource.SKIP_GRAM
    dim: int = 100
    epochs: int = 5
    window: int = 5
    """How many words to either side are company."""
    seed: int = 1

    def describe(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableConfig:
    """Which neighbours come into the table."""

    min_count: int = 5
    """Words that come less often have no vector worth trusting."""
    num_neighbours: int = 10
    min_cosine: float = 0.4
    """The lowest cosine of a learned neighbour; synonyms from a file need none."""

    def describe(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)
