"""A generator ahead of the trunk: guess the hidden tokens, and let the trunk read the guesses (Clark et al., 2020).

What arrives: a `Cloze`. What leaves: a prediction at each of its positions, and a token drawn from each prediction,
which takes the place of whatever stood there.
What never happens here: a gradient through a draw. The generator learns to guess well, not to deceive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import RecipeError
from unmask.nets.flops import Cost, token_head_cost, trunk_cost
from unmask.objectives.part import Objective, Question, chosen, ranked
from unmask.records import Cloze, Instance, Target
from unmask.views import Layout, in_place

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.transformer import Transformer
    from unmask.nets.trunk import Trunk


class Tie(StrEnum):
    """What the generator has in common with the trunk."""

    NONE = "none"
    EMBEDDINGS = "embeddings"
    """The embeddings of tokens, positions and segments with their norm; the paper's choice."""
    ALL = "all"
    """Everything but the head: the generator is the trunk itself, so it must have its size."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The token at each chosen position, said by a smaller network of its own; the trunk is shown what it draws.

    Tokens are drawn in proportion to the generator's probabilities, at temperature 1. After it, an `MLM` is the
    paper's "Replace MLM": the same question as ever, but about guesses instead of masks.
    """

    width: float = 0.25
    """How wide the generator is, as a part of the trunk: its states, its heads and the inside of its layers."""
    depth: float = 1.0
    """How deep it is, as a part of the trunk."""
    tie: Tie = Tie.EMBEDDINGS
    weight: float = 1.0
    name: ClassVar[str] = "guess"
    reads: ClassVar[type[Target]] = Cloze
    """A cloze."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if not (0 < self.width <= 1 and 0 < self.depth <= 1):
            raise RecipeError(
                f"Guess needs a width and a depth above 0 and at most 1, as parts of the trunk; found {self.width} and "
                f"{self.depth}."
            )

    def shape(self, trunk: Trunk) -> Trunk:
        """The shape of the generator: whole heads, and a width that they divide.

        Embeddings that it shares are as wide as the trunk's; those of its own, as wide as itself (the released code).
        """
        heads = max(1, round(trunk.heads * self.width))
        return replace(
            trunk,
            depth=max(1, round(trunk.depth * self.depth)),
            heads=heads,
            width=heads * max(1, round(trunk.width * self.width / heads)),
            inner=max(1, round(trunk.inner * self.width)),
            embedding=0 if self.tie is Tie.NONE else trunk.token_width,
        )

    def check(self, trunk: Trunk) -> None:
        """A generator that is the trunk itself must have its size."""
        mine = self.shape(trunk)
        if self.tie is Tie.ALL and replace(mine, embedding=trunk.embedding) != trunk:
            raise RecipeError(
                f"Guess with tie=ALL has the trunk itself as generator, so it needs width 1 and depth 1; found a "
                f"generator of depth {mine.depth} and width {mine.width} beside a trunk of depth {trunk.depth} and "
                f"width {trunk.width}. Set both to 1, or tie the embeddings alone."
            )

    def asks(self, sample: Layout) -> Question:
        """Each chosen position says its own token, whose input is hidden."""
        return Question(tuple(in_place(ranked(sample))), ranked(sample))

    def network(self, trunk: Transformer) -> nn.Module:
        """The generator with its head."""
        from unmask.objectives.guessing import Guessing, generator

        self.check(trunk.trunk)
        return Guessing(generator(trunk, self.shape(trunk.trunk), self.tie))

    def asked(self, instance: Instance) -> int:
        """One answer for each chosen position."""
        return chosen(instance)

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A network of its own, which reads every row once more, with a head for tokens."""
        shape = self.shape(trunk)
        return trunk_cost(shape) + token_head_cost(shape, vocabulary)


def networks_of(trunk: Trunk, objectives: Iterable[Objective]) -> tuple[Trunk, ...]:
    """The trunk, and the generators ahead of it."""
    return (trunk, *(one.shape(trunk) for one in objectives if isinstance(one, Guess)))
