"""What a user chooses by name when a network is used. No torch here: the command line lists the names in its help.

What arrives: nothing. What leaves: one enum for each choice.
What never happens here: work.
"""

from __future__ import annotations

from enum import StrEnum


class CheckpointChoice(StrEnum):
    """Which checkpoint of a run is meant."""

    LAST = "last"
    BEST = "best"
    """By the loss on held-out text; the last one where no trial was saved."""


class EmbeddingPooling(StrEnum):
    """How the states of a row become one vector."""

    MEAN = "mean"
    """The mean of all tokens, [CLS] and [SEP] among them, as sentence-transformers does it."""
    CLS = "cls"
    """The state of the first token."""
    MAX = "max"
    """The largest value of all tokens, dimension by dimension."""
