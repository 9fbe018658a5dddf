"""What a user chooses by name when a network is used. No torch here: the command line lists the names in its help.

What arrives: nothing. What leaves: one enum for each choice.
What never happens here: work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.core.errors import InputError


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """How a text is searched for. Width 1 takes the likeliest token each time."""

    num_beams: int = 1
    """How many texts are carried along for each source."""
    max_new_tokens: int = 64
    """The longest text, its end counted; the last token of such a text is the end, whatever it costs."""
    length_penalty: float = 0.0
    """Finished texts are compared by their log-probability over ((5 + length) / 6) ** penalty (Wu et al., 2016)."""
    no_repeat_ngram_size: int = 0
    """No run of this many tokens is written twice; 0 allows all."""

    def __post_init__(self) -> None:
        if self.num_beams < 1 or self.max_new_tokens < 1 or self.no_repeat_ngram_size < 0:
            raise InputError(
                f"A search needs a width and a length of 1 or more, and 0 or more tokens that are not repeated; found "
                f"width {self.num_beams}, length {self.max_new_tokens}, {self.no_repeat_ngram_size} tokens."
            )

    def length_divisor(self, length: int) -> float:
        """What the log-probability of a text of this length is divided by."""
        divisor: float = ((5 + length) / 6) ** self.length_penalty
        return divisor


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
