"""Pooling: how the token states of a row become one vector."""

from __future__ import annotations

from enum import StrEnum


class Pooling(StrEnum):
    """Which token states represent a row, and how they are combined."""

    FIRST = "first"
    """The state of the first token, [CLS]. A head passes it through BERT's pooler (Devlin et al., 2018)."""
    MEAN = "mean"
    """The mean over all tokens, special tokens included, as in sentence-transformers."""
    MAX = "max"
    """The maximum over all tokens, dimension by dimension."""
    ATTENTION = "attention"
    """A sum over all tokens, weighted by a learned query: for heads only, because the query has to be trained."""

    @property
    def is_first_only(self) -> bool:
        """Whether the vector depends on the state of the first token alone."""
        return self is Pooling.FIRST
