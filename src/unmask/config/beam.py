"""How a text is searched for, as a value. No torch here: a task keeps it as JSON, and the command line names its parts.

What arrives: numbers that a user chose. What leaves: a `Beam`.
What never happens here: the search; see `beam_search.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
