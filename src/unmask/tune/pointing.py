"""What a network learns when it is tuned to copy its answer from the input: where the answer begins and ends.

What arrives: an `Extract` about each row. What leaves: two scores for each token.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.objectives.part import Question
from unmask.records import Extract, Instance, Target
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Point:
    """Points at the first and the last token of the answer; at [CLS] where a row holds none (Devlin et al., 2018)."""

    name: str = "span"
    weight: float = 1.0
    reads: ClassVar[type[Target]] = Extract
    first_only: ClassVar[bool] = False
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """One linear layer over every token, and nothing before it."""
        from unmask.objectives.span import SaySpan

        return SaySpan(trunk, self.name)

    def asked(self, instance: Instance) -> int:
        """One answer for each row that a span is told about."""
        return sum(len(one.start) for one in instance.targets if isinstance(one, Extract) and one.name == self.name)
