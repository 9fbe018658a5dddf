"""Masked language modelling: say the token at each chosen position (Devlin et al., 2018).

What arrives: a `Cloze`. What leaves: a prediction at each of its positions, read from the position itself.
What never happens here: a loss at positions that were not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.nets.flops import Cost, token_head_cost
from unmask.objectives.part import Question, chosen, ranked
from unmask.records import Cloze, Instance, Target
from unmask.views import Layout, in_place

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class MLM:
    """The token at each chosen position, with the input embedding as output matrix."""

    weight: float = 1.0
    name: ClassVar[str] = "mlm"
    reads: ClassVar[type[Target]] = Cloze
    """A cloze."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """Each chosen position says its own token, whose input is hidden."""
        return Question(tuple(in_place(ranked(sample))), ranked(sample))

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """Logits at the chosen positions only, through the token embedding itself."""
        from unmask.objectives.heads import SayTokens

        return SayTokens(trunk, token)

    def asked(self, instance: Instance) -> int:
        """One answer for each chosen position."""
        return chosen(instance)

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A head for tokens at every chosen position."""
        return token_head_cost(trunk, vocabulary)
