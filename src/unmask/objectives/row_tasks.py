"""What a network learns when it is tuned on whole rows: a class, a number, several labels, or which row is right.

What arrives: a `Fact`, an `Amount`, `Labels` or an `Among` about rows. What leaves: one line of scores a row.
What never happens here: torch, until a head is asked for. How a row is read out is a word: `ReadOut`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.pooling import Pooling
from unmask.core.records import CandidateGroups, InputsAndTargets, RowClass, RowMultiLabel, RowValue, Target
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class Classification(Objective):
    """Says which of some classes a row belongs to: a read-out, dropout and a linear layer (Devlin et al., 2018)."""

    num_classes: int
    name: str = "judge"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowClass

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.pooling.is_first_only

    @property
    def facts(self) -> frozenset[str]:
        """The fact about a row that it is told."""
        return frozenset({self.name})

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the classes as anywhere in the trunk."""
        from unmask.objectives.heads.common import RowClassHead

        return RowClassHead(backbone.config, self.name, self.num_classes, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that the fact is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowClass) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class Regression(Objective):
    """Says a number about a row: the same head with one output, and squared error."""

    name: str = "rate"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowValue
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the number as anywhere in the trunk."""
        from unmask.objectives.heads.common import RowRegressionHead

        return RowRegressionHead(backbone.config, self.name, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that a number is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowValue) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class MultiLabel(Objective):
    """Says which of some labels a row has: the same head with an output for each, and binary cross-entropy."""

    num_labels: int
    name: str = "labels"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowMultiLabel
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the labels as anywhere in the trunk."""
        from unmask.objectives.heads.row_tasks import MultiLabelHead

        return MultiLabelHead(backbone.config, self.name, self.num_labels, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer, its whole set of labels, for each row."""
        return sum(
            len(one.value) for one in instance.targets if isinstance(one, RowMultiLabel) and one.name == self.name
        )


@dataclass(frozen=True, slots=True)
class Ranking(Objective):
    """Says which rows of a group are right: the same head with one output, and a softmax against the wrong rows."""

    name: str = "pick"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    bounded: bool = False
    """Whether a score goes through a sigmoid before the softmax, as MT-DNN's paper writes it."""
    target_type: ClassVar[type[Target]] = CandidateGroups
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether it looks at the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the score as anywhere in the trunk."""
        from unmask.objectives.heads.row_tasks import RankingHead

        return RankingHead(backbone.config, self.name, backbone.config.dropout, self.pooling, self.bounded)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that is right."""
        told = (one for one in instance.targets if isinstance(one, CandidateGroups) and one.name == self.name)
        return sum(int((one.value > 0).sum()) for one in told)
