"""All-Tokens MLM: say every token of the text, after a generator has written into it (Clark et al., 2020, section 3.6).

What arrives: the states of a batch with guesses in it. What leaves: the true token at every position.
What never happens here: knowing where the guesses are. The network must find out which tokens it may copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.nets.flops import Cost, product, token_head_cost
from unmask.objectives.guess import Guess
from unmask.objectives.part import Objective, Question, ranked
from unmask.records import Cloze, Instance, Target
from unmask.views import Layout, in_place

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Every:
    """The true token at every position: a gate copies the one that is shown, or leaves the word to a softmax."""

    weight: float = 1.0
    name: ClassVar[str] = "every"
    reads: ClassVar[type[Target]] = Cloze
    """A cloze: the truth where a guess stands."""
    facts: ClassVar[frozenset[str]] = frozenset()
    follows: ClassVar[type[Objective]] = Guess
    """Without guesses among them, copying all tokens would be the whole answer."""

    def asks(self, sample: Layout) -> Question:
        """A token that was not chosen may be copied; at a chosen one the truth is hidden."""
        return Question(tuple(in_place(ranked(sample))), ranked(sample))

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """Logits at all positions, and a gate."""
        from unmask.objectives.after_guess import SayEvery

        return SayEvery(trunk, token)

    def asked(self, instance: Instance) -> int:
        """One answer for each token."""
        return len(instance.inputs.ids)

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A head for tokens and a gate, at every token."""
        return token_head_cost(trunk, vocabulary) + Cost(answer=product(trunk.width, 1))
