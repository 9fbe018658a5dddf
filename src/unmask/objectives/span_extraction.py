"""What a network learns when it is tuned to copy its answer from the input: where the answer begins and ends.

What arrives: an `Extract` about each row. What leaves: two scores for each token.
What never happens here: torch, until a head is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.core.records import AnswerSpan, InputsAndTargets, Target
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class SpanExtraction(Objective):
    """Points at the first and the last token of the answer; at [CLS] where a row holds none (Devlin et al., 2018)."""

    name: str = "span"
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = AnswerSpan
    facts: ClassVar[frozenset[str]] = frozenset()

    def build_head(self, backbone: Backbone) -> nn.Module:
        """One linear layer over every token, and nothing before it."""
        from unmask.objectives.heads.row_tasks import SpanHead

        return SpanHead(backbone.config, self.name)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that a span is told about."""
        return sum(len(one.start) for one in instance.targets if isinstance(one, AnswerSpan) and one.name == self.name)
