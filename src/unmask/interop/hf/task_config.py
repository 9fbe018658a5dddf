"""What must be known beside the weights to give the answers of a tuned network.

What arrives: nothing. What leaves: `Task`, for the settings, the tokenizer and the card of an export.
What never happens here: the weights that answer it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """How the numbers of a network are read as answers. Nothing of it matters to a network that was not tuned."""

    labels: tuple[str, ...] = ()
    """The names of the classes, in the order of their numbers; empty where there are none."""
    is_multi_label: bool = False
    """Whether a row may have several labels, or none."""
    max_length: int = 0
    """The longest row that the network was tuned with; 0 for as long as it has positions."""
    max_answer_tokens: int = 0
    """The most tokens of an answer that is copied from a passage."""
    threshold: float = math.inf
    """How much more must speak for no answer than for the best one, so that there is none; infinite: never."""
    notes: tuple[str, ...] = ()
    """What else a reader of the answers should know, in sentences."""


NO_TASK = TaskConfig()
