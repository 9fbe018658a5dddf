"""Fine-tuning objectives on whole rows: a class, a number, several labels, or which row of a group is relevant."""

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
    """One of some classes: pooling, dropout and a linear layer (Devlin et al., 2018)."""

    num_classes: int
    name: str = "judge"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowClass

    @property
    def first_only(self) -> bool:
        """Whether its head reads the first token of a row only."""
        return self.pooling.is_first_only

    @property
    def facts(self) -> frozenset[str]:
        """The fact that the target states."""
        return frozenset({self.name})

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Pooling, the dropout of the network, and a linear layer."""
        from unmask.objectives.heads.common import RowClassHead

        return RowClassHead(backbone.config, self.name, self.num_classes, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each row with a class."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowClass) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class Regression(Objective):
    """A number: the same head with one output, and squared error."""

    name: str = "rate"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowValue
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether its head reads the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Pooling, the dropout of the network, and one output."""
        from unmask.objectives.heads.common import RowRegressionHead

        return RowRegressionHead(backbone.config, self.name, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each row with a number."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, RowValue) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class MultiLabel(Objective):
    """Several labels: the same head with an output for each, and binary cross-entropy."""

    num_labels: int
    name: str = "labels"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    target_type: ClassVar[type[Target]] = RowMultiLabel
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether its head reads the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Pooling, the dropout of the network, and an output for each label."""
        from unmask.objectives.heads.row_tasks import MultiLabelHead

        return MultiLabelHead(backbone.config, self.name, self.num_labels, backbone.config.dropout, self.pooling)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer, its whole set of labels, for each row."""
        return sum(
            len(one.value) for one in instance.targets if isinstance(one, RowMultiLabel) and one.name == self.name
        )


@dataclass(frozen=True, slots=True)
class Ranking(Objective):
    """The relevant rows of a group: the same head with one output, and a softmax against the other rows."""

    name: str = "pick"
    weight: float = 1.0
    pooling: Pooling = Pooling.FIRST
    bounded: bool = False
    """Whether a score goes through a sigmoid before the softmax, as MT-DNN's paper writes it."""
    target_type: ClassVar[type[Target]] = CandidateGroups
    facts: ClassVar[frozenset[str]] = frozenset()

    @property
    def first_only(self) -> bool:
        """Whether its head reads the first token of a row only."""
        return self.pooling.is_first_only

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Pooling, the dropout of the network, and one score."""
        from unmask.objectives.heads.row_tasks import RankingHead

        return RankingHead(backbone.config, self.name, backbone.config.dropout, self.pooling, self.bounded)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each row that is right."""
        targets = (one for one in instance.targets if isinstance(one, CandidateGroups) and one.name == self.name)
        return sum(int((one.value > 0).sum()) for one in targets)
