"""The shape of a network as a value: what a recipe says about it. No torch here.

What arrives: the numbers of a paper. What leaves: a frozen value that `transformer.py` builds from.
What never happens here: the size of a vocabulary or the number of positions; both are derived when a network is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.errors import RecipeError


class Activation(StrEnum):
    """The non-linearity between the two halves of a feed-forward layer."""

    GELU = "gelu"
    """x times the normal distribution function, exactly."""
    GELU_TANH = "gelu_tanh"
    """The approximation of Google's BERT code, ALBERT and GPT-2."""
    RELU = "relu"
    TANH = "tanh"
    GATED = "gated"
    """A gate with exact GELU times a linear branch (GLU)."""


class Norm(StrEnum):
    """Where the layer norms stand."""

    POST = "post"
    """After each residual sum (BERT)."""
    PRE = "pre"
    """Before each branch, and once at the end (GPT-2)."""


class Positions(StrEnum):
    """How a token knows where it stands."""

    LEARNED = "learned"
    SINUSOIDAL = "sinusoidal"


class Sharing(StrEnum):
    """Which parameters all layers have in common (ALBERT)."""

    NONE = "none"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trunk:
    """A stack of Transformer blocks with its embeddings."""

    depth: int
    width: int
    heads: int
    inner: int
    """Width between the two halves of a feed-forward layer."""
    embedding: int = 0
    """Width of the token embedding; 0 means the width of the trunk, anything else is projected up to it (ALBERT)."""
    segments: int = 2
    tasks: int = 0
    """How many task embeddings are added (ERNIE 2.0)."""
    activation: Activation = Activation.GELU
    norm: Norm = Norm.POST
    positions: Positions = Positions.LEARNED
    sharing: Sharing = Sharing.NONE
    groups: int = 1
    """How many sets of what is shared there are; the layers are parted evenly among them, in order (ALBERT)."""
    cycle: int = 1
    """How many layers of its own a group has, which its share of the depth runs through again and again (ALBERT)."""
    first_position: int = 0
    """The number of the first position; those before it are never used (RoBERTa: 2)."""
    pooled: Activation = Activation.TANH
    """The non-linearity over the first token, before the classes of a row."""
    dropout: float = 0.1
    attention_dropout: float = 0.1
    epsilon: float = 1e-12
    """Of the layer norms."""
    spread: float = 0.02
    """Standard deviation of the initial weights (a normal law cut at two deviations)."""

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.heads, self.inner) < 1 or self.width % self.heads:
            raise RecipeError(
                f"A trunk needs positive sizes and a width that its heads divide; found depth {self.depth}, width "
                f"{self.width}, {self.heads} heads, inner {self.inner}."
            )
        if not (0 <= self.dropout < 1 and 0 <= self.attention_dropout < 1):
            raise RecipeError(f"Dropout lies between 0 and 1, found {self.dropout} and {self.attention_dropout}.")

    @property
    def token_width(self) -> int:
        """Width of the token embedding."""
        return self.embedding or self.width
