"""What a network learns when it is tuned on whole rows: a class, a number, several labels, or which row is right.

What arrives: a `Fact`, an `Amount`, `Labels` or an `Among` about rows. What leaves: one line of scores a row.
What never happens here: torch, until a head is asked for. How a row is read out is a word: `ReadOut`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.nets.reading import ReadOut
from unmask.objectives.part import Question
from unmask.records import Among, Amount, Fact, Instance, Labels, Target
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Judge:
    """Says which of some classes a row belongs to: a read-out, dropout and a linear layer (Devlin et al., 2018)."""

    classes: int
    name: str = "judge"
    weight: float = 1.0
    read: ReadOut = ReadOut.FIRST
    reads: ClassVar[type[Target]] = Fact

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.read.first_only

    @property
    def facts(self) -> frozenset[str]:
        """The fact about a row that it is told."""
        return frozenset({self.name})

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the classes as anywhere in the trunk."""
        from unmask.objectives.heads import SayFact

        return SayFact(trunk, self.name, self.classes, trunk.dropout, self.read)

    def asked(self, instance: Instance) -> int:
        """One answer for each row that the fact is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, Fact) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class Rate:
    """Says a number about a row: the same head with one output, and squared error."""

    name: str = "rate"
    weight: float = 1.0
    read: ReadOut = ReadOut.FIRST
    reads: ClassVar[type[Target]] = Amount
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.read.first_only

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the number as anywhere in the trunk."""
        from unmask.objectives.heads import SayAmount

        return SayAmount(trunk, self.name, trunk.dropout, self.read)

    def asked(self, instance: Instance) -> int:
        """One answer for each row that a number is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, Amount) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class Tick:
    """Says which of some labels a row has: the same head with an output for each, and binary cross-entropy."""

    labels: int
    name: str = "labels"
    weight: float = 1.0
    read: ReadOut = ReadOut.FIRST
    reads: ClassVar[type[Target]] = Labels
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.read.first_only

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the labels as anywhere in the trunk."""
        from unmask.objectives.labels import SayLabels

        return SayLabels(trunk, self.name, self.labels, trunk.dropout, self.read)

    def asked(self, instance: Instance) -> int:
        """One answer, its whole set of labels, for each row."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, Labels) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class Pick:
    """Says which rows of a group are right: the same head with one output, and a softmax against the wrong rows."""

    name: str = "pick"
    weight: float = 1.0
    read: ReadOut = ReadOut.FIRST
    bounded: bool = False
    """Whether a score goes through a sigmoid before the softmax, as MT-DNN's paper writes it."""
    reads: ClassVar[type[Target]] = Among
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.read.first_only

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the score as anywhere in the trunk."""
        from unmask.objectives.among import SayAmong

        return SayAmong(trunk, self.name, trunk.dropout, self.read, self.bounded)

    def asked(self, instance: Instance) -> int:
        """One answer for each row that is right."""
        told = (one for one in instance.targets if isinstance(one, Among) and one.name == self.name)
        return sum(int((one.value > 0).sum()) for one in told)
