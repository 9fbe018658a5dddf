"""How texts are written: by which part of a network, how long, and how they are searched for.

What arrives: words of the command line. What leaves: a `Manner`, kept as JSON with what was learned in it.
What never happens here: torch, or a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.errors import InputError
from unmask.use.beam_choice import Beam


class Version(StrEnum):
    """Which part of a network writes."""

    BESIDE = "1"
    """A new decoder, which looks at what the encoder has made of the source."""
    BEHIND = "2"
    """The encoder itself, which goes on behind its source: every pre-trained weight is used."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Everything about writing that a user may wish for."""

    version: Version = Version.BEHIND
    search: Beam = Beam()
    """How a text is searched for; its length is also that of the longest text that is learned from."""
    depth: int = 0
    """How many blocks a new decoder has; 0 stands for as many as the encoder."""
    smoothing: float = 0.0
    """The share of the truth that is spread over the whole vocabulary while learning."""

    def __post_init__(self) -> None:
        if self.depth < 0 or not 0 <= self.smoothing < 1:
            raise InputError(
                f"Writing needs a depth of 0 or more and smoothing from 0 to below 1, found {self.depth} and "
                f"{self.smoothing}."
            )

    def __str__(self) -> str:
        writer = "the encoder behind its source" if self.version is Version.BEHIND else "a new decoder"
        how = f"the best of {self.search.width} at a time" if self.search.width > 1 else "the likeliest token each time"
        return f"texts of at most {self.search.most} tokens are written by {writer}, {how}"
