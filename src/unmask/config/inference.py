"""Settings for using a network: the choice of a checkpoint, beam search and text generation. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.core.errors import InputError


class CheckpointChoice(StrEnum):
    """A checkpoint of a run."""

    LAST = "last"
    BEST = "best"
    """The one with the lowest held-out loss; the last one if no evaluation was saved."""


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Beam search; one beam is greedy decoding."""

    num_beams: int = 1
    """Hypotheses per source."""
    max_new_tokens: int = 64
    """The longest output with its end token, which is forced there."""
    length_penalty: float = 0.0
    """Finished hypotheses are ranked by log-probability / ((5 + length) / 6) ** penalty (Wu et al., 2016)."""
    no_repeat_ngram_size: int = 0
    """N-grams of this many tokens are generated at most once; 0 allows repetition."""

    def __post_init__(self) -> None:
        if self.num_beams < 1 or self.max_new_tokens < 1 or self.no_repeat_ngram_size < 0:
            raise InputError(
                f"Beam search needs 1 or more beams, 1 or more new tokens and an n-gram size of 0 or more; found "
                f"{self.num_beams}, {self.max_new_tokens} and {self.no_repeat_ngram_size}. Change that number."
            )

    def length_divisor(self, length: int) -> float:
        """The divisor of the log-probability of an output of this length."""
        divisor: float = ((5 + length) / 6) ** self.length_penalty
        return divisor


class DecoderKind(StrEnum):
    """The part of a network that generates text."""

    NEW_DECODER = "new"
    """A new decoder with cross-attention to the encoder's states."""
    PREFIX_LM = "encoder"
    """The encoder itself as a prefix language model: it continues its source, and every pre-trained weight is used."""


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How texts are generated, and how generation is trained."""

    decoder: DecoderKind = DecoderKind.PREFIX_LM
    beam_search: BeamSearch = BeamSearch()
    """Its `max_new_tokens` is also the longest target in training."""
    depth: int = 0
    """Blocks of a new decoder; 0 stands for as many as the encoder has."""
    label_smoothing: float = 0.0
    """The share of the target probability that is spread over the whole vocabulary in training."""

    def __post_init__(self) -> None:
        if self.depth < 0 or not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"Generation needs a depth of 0 or more and label smoothing from 0 to below 1; found {self.depth} and "
                f"{self.label_smoothing}. Change that number."
            )

    def __str__(self) -> str:
        writer = "the encoder as a prefix LM" if self.decoder is DecoderKind.PREFIX_LM else "a new decoder"
        beams = self.beam_search.num_beams
        search = f"beam search with {beams} beams" if beams > 1 else "greedy decoding"
        return f"texts of at most {self.beam_search.max_new_tokens} tokens by {writer}, {search}"
