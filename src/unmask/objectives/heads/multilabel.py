"""The head that gives a row several labels, with its loss.

What arrives: the last states of a flat batch, and a bit for each row and label. What leaves: a `Term`.
What never happens here: labels that compete. Each is said or not, whatever the others are.

Shapes: B rows, C labels.
"""

from __future__ import annotations

import torch.nn.functional as F

from unmask.config.network import NetworkValues
from unmask.config.pooling import Pooling
from unmask.core.records import RowMultiLabel
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.common import LossSum, PooledHead


class MultiLabelHead(PooledHead):
    """Which of some labels each row has.

    The loss of a row is the binary cross-entropy *summed* over the labels: minus the log-probability of its whole set,
    if labels are independent. Rows are counted, so the loss of a batch is a mean over rows. A row is right if each of
    its labels is, with a probability of one half as the border.
    """

    def __init__(
        self,
        config: NetworkValues,
        name: str,
        num_labels: int,
        dropout: float = 0.0,
        pooling: Pooling = Pooling.FIRST,
    ) -> None:
        super().__init__(config, num_labels, dropout, pooling)
        self.name = name

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss over rows. Rows after those that the labels are about belong to others."""
        answers = batch.target(RowMultiLabel, self.name)
        logits_BC = self.logits(states, batch)[: len(answers.value)].float()
        total = F.binary_cross_entropy_with_logits(logits_BC, answers.value.float(), reduction="sum")
        right_B = ((logits_BC >= 0) == (answers.value > 0)).all(-1)
        return LossSum(total, right_B.sum(), len(right_B))
