"""The shape of a network as a value: what a recipe says about it. No torch here.

What arrives: the numbers of a paper. What leaves: a frozen value that `encoder.py` builds from.
What never happens here: the size of a vocabulary or the number of positions; both are derived when a network is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.core.errors import RecipeError


class Activation(StrEnum):
    """The non-linearity between the two halves of a feed-forward layer."""

    GELU = "gelu"
    """x times the normal distribution function, exactly."""
    GELU_TANH = "gelu_tanh"
    """The approximation of Google's BERT code, ALBERT and GPT-2."""
    RELU = "relu"
    TANH = "tanh"
    GEGLU = "gated"
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
class TransformerConfig:
    """A stack of Transformer blocks with its embeddings."""

    depth: int
    width: int
    heads: int
    ffn_width: int
    """Width between the two halves of a feed-forward layer."""
    embedding_width: int = 0
    """Width of the token embedding; 0 means the width of the trunk, anything else is projected up to it (ALBERT)."""
    num_segments: int = 2
    """How many segments are told apart; with 1 all tokens are of the same."""
    num_tasks: int = 0
    """How many task embeddings are added (ERNIE 2.0)."""
    activation: Activation = Activation.GELU
    norm: Norm = Norm.POST
    positions: Positions = Positions.LEARNED
    sharing: Sharing = Sharing.NONE
    share_groups: int = 1
    """How many sets of what is shared there are; the layers are parted evenly among them, in order (ALBERT)."""
    layers_per_group: int = 1
    """How many layers of its own a group has, which its share of the depth runs through again and again (ALBERT)."""
    position_offset: int = 0
    """The number of the first position; those before it are never used (RoBERTa: 2)."""
    pooler_activation: Activation = Activation.TANH
    """The non-linearity over the first token, before the classes of a row."""
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm_eps: float = 1e-12
    """Of the layer norms."""
    init_std: float = 0.02
    """Standard deviation of the initial weights (a normal law cut at two deviations)."""

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.heads, self.ffn_width) < 1 or self.width % self.heads:
            raise RecipeError(
                f"A trunk needs positive sizes and a width that its heads divide; found depth {self.depth}, width "
                f"{self.width}, {self.heads} heads, inner {self.ffn_width}."
            )
        if min(self.embedding_width, self.num_segments, self.num_tasks) < 0 or min(self.norm_eps, self.init_std) <= 0:
            raise RecipeError(
                f"A trunk has 0 or more segments, task embeddings and places of a narrow embedding, and positive "
                f"numbers for epsilon and spread; found {self.num_segments}, {self.num_tasks}, {self.embedding_width}, "
                f"{self.norm_eps:g} and {self.init_std:g}."
            )
        if not (0 <= self.dropout < 1 and 0 <= self.attention_dropout < 1):
            raise RecipeError(f"Dropout lies between 0 and 1, found {self.dropout} and {self.attention_dropout}.")
        if self.position_offset < 0:
            raise RecipeError(f"The first position is numbered 0 or more, found {self.position_offset}.")
        self._check_sharing()

    @property
    def token_width(self) -> int:
        """Width of the token embedding."""
        return self.embedding_width or self.width

    @property
    def num_distinct_layers(self) -> int:
        """How many sets of what is shared there are; without sharing every layer is a set of its own."""
        return self.depth if self.sharing is Sharing.NONE else self.share_groups * self.layers_per_group

    @property
    def layer_of_depth(self) -> tuple[int, ...]:
        """Which set stands at each depth. Three sets of a cycle in two groups: 0 1 2 0 1 2, then 3 4 5 3 4 5."""
        if self.sharing is Sharing.NONE:
            return tuple(range(self.depth))
        part = self.depth // self.share_groups
        return tuple(
            layer // part * self.layers_per_group + layer % self.layers_per_group for layer in range(self.depth)
        )

    def is_shared(self, branch: Sharing) -> bool:
        """Whether layers have this branch in common: `ATTENTION` or `FEED_FORWARD`."""
        return self.sharing in (branch, Sharing.ALL)

    def _check_sharing(self) -> None:
        if min(self.share_groups, self.layers_per_group) < 1 or self.depth % (
            self.share_groups * self.layers_per_group
        ):
            raise RecipeError(
                f"The layers of a trunk are parted evenly among its groups, and each part runs through its cycle a "
                f"whole number of times; found depth {self.depth}, {self.share_groups} groups, a cycle of {self.layers_per_group}. Take "
                "numbers whose product divides the depth."
            )
        if self.sharing is Sharing.NONE and self.share_groups * self.layers_per_group > 1:
            raise RecipeError(
                f"Groups and cycles say which layers share, but here none do; found {self.share_groups} groups and a cycle "
                f"of {self.layers_per_group}. Set sharing to attention, feed_forward or all, or leave both at 1."
            )
