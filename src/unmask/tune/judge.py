"""What a network learns when it is tuned on whole rows: a class, or a number.

What arrives: a `Fact` or an `Amount` about each row. What leaves: one answer a row, read from its first token.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.objectives.part import Question
from unmask.records import Amount, Fact, Instance, Target
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Judge:
    """Says which of some classes a row belongs to: the pooler, dropout and a linear layer (Devlin et al., 2018)."""

    classes: int
    weight: float = 1.0
    name: ClassVar[str] = "judge"
    reads: ClassVar[type[Target]] = Fact
    facts: ClassVar[frozenset[str]] = frozenset({"judge"})

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the classes as anywhere in the trunk."""
        from unmask.objectives.heads import SayFact

        return SayFact(trunk, self.name, self.classes, trunk.dropout)

    def asked(self, instance: Instance) -> int:
        """One answer for each row."""
        return len(instance.inputs.rows) - 1


@dataclass(frozen=True, slots=True)
class Rate:
    """Says a number about a row: the same head with one output, and squared error."""

    weight: float = 1.0
    name: ClassVar[str] = "rate"
    reads: ClassVar[type[Target]] = Amount
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the number as anywhere in the trunk."""
        from unmask.objectives.heads import SayAmount

        return SayAmount(trunk, self.name, trunk.dropout)

    def asked(self, instance: Instance) -> int:
        """One answer for each row."""
        return len(instance.inputs.rows) - 1
