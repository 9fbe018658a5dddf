"""Classes of a row by its first token: next-sentence and sentence-order prediction, real and fake dialogue turns.

Each objective names the fact about a row that it needs; a task whose rows do not state it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.core.records import InputsAndTargets, RowClass, Target
from unmask.nets.accounting.flops import ForwardCost, row_head_cost
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkValues
    from unmask.nets.backbone import Backbone


class RowFact(StrEnum):
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
class RowFactObjective(Objective):
    """Predicts one fact about a row from its first token, after BERT's pooler."""

    fact: RowFact
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = RowClass
    """A fact."""

    @property
    def name(self) -> str:
        """The predicted fact."""
        return self.fact.value

    @property
    def num_classes(self) -> int:
        """How many answers there are."""
        return 3 if self.fact is RowFact.PAIR else 2

    @property
    def facts(self) -> frozenset[str]:
        """The predicted fact."""
        return frozenset({self.fact.value})

    def build_head(self, backbone: Backbone) -> nn.Module:
        """BERT's pooler and a linear layer over the first token."""
        from unmask.objectives.heads.common import RowClassHead

        return RowClassHead(backbone.config, self.fact.value, self.num_classes)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row."""
        return len(instance.inputs.rows) - 1

    def cost(self, config: NetworkValues, vocab_size: int) -> ForwardCost:
        """A pooler and the classes, for every row."""
        return row_head_cost(config, self.num_classes)


NSP = RowFactObjective(RowFact.NEXT)
SOP = RowFactObjective(RowFact.ORDER)
DLM = RowFactObjective(RowFact.REPLY)
