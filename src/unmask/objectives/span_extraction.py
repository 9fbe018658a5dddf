"""Extractive question answering: the first and the last token of the answer, two scores for each token."""

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
    """The first and last token of the answer; the first token of a row without one (Devlin et al., 2018)."""

    name: str = "span"
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = AnswerSpan
    facts: ClassVar[frozenset[str]] = frozenset()

    def build_head(self, backbone: Backbone) -> nn.Module:
        """One linear layer over every token, and nothing before it."""
        from unmask.objectives.heads.row_tasks import SpanHead

        return SpanHead(backbone.config, self.name)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each row with a span."""
        return sum(len(one.start) for one in instance.targets if isinstance(one, AnswerSpan) and one.name == self.name)
