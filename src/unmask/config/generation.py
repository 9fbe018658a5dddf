"""How texts are written: by which part of a network, how long, and how they are searched for.

What arrives: words of the command line. What leaves: a `Manner`, kept as JSON with what was learned in it.
What never happens here: torch, or a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.config.beam import BeamSearch
from unmask.core.errors import InputError


class DecoderKind(StrEnum):
    """Which part of a network writes."""

    NEW_DECODER = "1"
    """A new decoder, which looks at what the encoder has made of the source."""
    PREFIX_LM = "2"
    """The encoder itself, which goes on behind its source: every pre-trained weight is used."""


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """Everything about writing that a user may wish for."""

    decoder: DecoderKind = DecoderKind.PREFIX_LM
    beam_search: BeamSearch = BeamSearch()
    """How a text is searched for; its length is also that of the longest text that is learned from."""
    depth: int = 0
    """How many blocks a new decoder has; 0 stands for as many as the encoder."""
    label_smoothing: float = 0.0
    """The share of the truth that is spread over the whole vocabulary while learning."""

    def __post_init__(self) -> None:
        if self.depth < 0 or not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"Writing needs a depth of 0 or more and smoothing from 0 to below 1, found {self.depth} and "
                f"{self.label_smoothing}."
            )

    def __str__(self) -> str:
        writer = "the encoder behind its source" if self.decoder is DecoderKind.PREFIX_LM else "a new decoder"
        how = (
            f"the best of {self.beam_search.num_beams} at a time"
            if self.beam_search.num_beams > 1
            else "the likeliest token each time"
        )
        return f"texts of at most {self.beam_search.max_new_tokens} tokens are written by {writer}, {how}"
