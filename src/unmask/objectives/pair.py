"""Truths about a row, read from the first token: next-sentence and sentence-order prediction, real and fake turns.

What arrives: a `Fact` about each row. What leaves: one class a row.
What never happens here: a task that is fed with the wrong kind of pairs; each objective names the fact it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.nets.flops import Cost, row_head_cost
from unmask.objectives.part import Question
from unmask.records import Fact, Instance, Target
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


class Truth(StrEnum):
    """The facts that pairs and dialogues can state."""

    NEXT = "next"
    """0: B follows A. 1: B comes from another document (NSP: Devlin et al., 2018)."""
    ORDER = "order"
    """0: in order. 1: swapped (SOP: Lan et al., 2019)."""
    PAIR = "pair"
    """0: in order. 1: swapped. 2: B comes from another document."""
    REPLY = "reply"
    """0: every turn of the conversation is real. 1: one comes from another (DLM: Sun et al., 2019)."""


@dataclass(frozen=True, slots=True)
class SayTruth:
    """Says one fact about a row from its first token, after BERT's pooler."""

    truth: Truth
    weight: float = 1.0
    reads: ClassVar[type[Target]] = Fact
    """A fact."""

    @property
    def name(self) -> str:
        """The fact that it says."""
        return self.truth.value

    @property
    def classes(self) -> int:
        """How many answers there are."""
        return 3 if self.truth is Truth.PAIR else 2

    @property
    def facts(self) -> frozenset[str]:
        """The one it says."""
        return frozenset({self.truth.value})

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """BERT's pooler and a linear layer over the first token."""
        from unmask.objectives.heads import SayFact

        return SayFact(trunk, self.truth.value, self.classes)

    def asked(self, instance: Instance) -> int:
        """One answer for each row."""
        return len(instance.inputs.rows) - 1

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A pooler and the classes, for every row."""
        return row_head_cost(trunk, self.classes)


NSP = SayTruth(Truth.NEXT)
SOP = SayTruth(Truth.ORDER)
DLM = SayTruth(Truth.REPLY)
