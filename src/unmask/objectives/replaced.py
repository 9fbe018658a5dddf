"""Replaced token detection: say of every token whether it is the text's own (Clark et al., 2020).

What arrives: the states of a batch that a generator has written into. What leaves: a yes or no at each token.
What never happens here: a token counted as replaced because it was chosen. A generator that guesses right replaces
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.nets.flops import Cost, replaced_head_cost
from unmask.objectives.guess import Guess
from unmask.objectives.part import Objective, Question, chosen
from unmask.records import Cloze, Instance, Target
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


class Where(StrEnum):
    """Which tokens are judged."""

    ALL = "all"
    """Every token of every row, [CLS] and [SEP] too."""
    CHOSEN = "chosen"
    """Only those that a generator wrote: "ELECTRA 15%", which shows what learning from all tokens is worth."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """Whether each token was replaced: sigmoid cross-entropy."""

    weight: float = 50.0
    """A yes or no is a small loss beside that of a cloze; the paper found 50 in a search from 1 to 100."""
    where: Where = Where.ALL
    name: ClassVar[str] = "replaced"
    reads: ClassVar[type[Target]] = Cloze
    """A cloze: what was there, to be compared with what was written."""
    facts: ClassVar[frozenset[str]] = frozenset()
    follows: ClassVar[type[Objective]] = Guess
    """Somebody must have written something."""

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """A layer and one number for each token."""
        from unmask.objectives.after_guess import SayReplaced

        return SayReplaced(trunk, self.where)

    def asked(self, instance: Instance) -> int:
        """One answer for each token, or for each chosen position."""
        if self.where is Where.ALL:
            return len(instance.inputs.ids)
        return chosen(instance)

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A layer and one number."""
        return replaced_head_cost(trunk)
