"""How a row of tokens becomes one vector, as a word that needs no network.

What arrives: nothing. What leaves: `ReadOut`, which a task, a head and a policy that keeps states all name.
What never happens here: torch. The work is done in `pooling.py`.
"""

from __future__ import annotations

from enum import StrEnum


class Pooling(StrEnum):
    """Which tokens of a row speak for it."""

    FIRST = "first"
    """The first one, [CLS], through BERT's pooler (Devlin et al., 2018)."""
    MEAN = "mean"
    """All of them alike: their mean."""
    ATTENTION = "attention"
    """All of them, each as much as a learned query attends to it."""

    @property
    def is_first_only(self) -> bool:
        """Whether nothing but the first token of a row is looked at, so that nothing else has to be kept."""
        return self is Pooling.FIRST
