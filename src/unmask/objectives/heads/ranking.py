"""The head that compares the rows of a group, with its loss: choices of a question, candidates of a query.

What arrives: the last states of a flat batch, the group of each row and how right it is. What leaves: a `Term`.
What never happens here: a comparison across groups, or of two rows that are both right.

Shapes: B rows, G groups.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from unmask.config.network import NetworkValues
from unmask.config.pooling import Pooling
from unmask.core.records import CandidateGroups
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import to_device
from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.pooling import segment_logsumexp, segment_max
from unmask.objectives.heads.common import LossSum, PooledHead


class RankingHead(PooledHead):
    """One score for each row, and a softmax over it and the wrong rows of its group.

    A right row with score s costs `-log(exp(s) / (exp(s) + sum of exp(wrong scores)))`: the positive against the
    negatives of the same query (MT-DNN: Liu et al., 2019). Right rows do not compete with each other; with one right
    row in a group, this is the cross-entropy of multiple choice. Right rows are counted; one is said rightly if it
    stands above all wrong ones. A group with no right row, or with no wrong one, adds nothing to the loss.
    """

    def __init__(
        self,
        config: NetworkValues,
        name: str,
        dropout: float = 0.0,
        pooling: Pooling = Pooling.FIRST,
        bounded: bool = False,
    ) -> None:
        super().__init__(config, 1, dropout, pooling)
        self.name, self.bounded = name, bounded

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss over all right rows."""
        told = batch.target(CandidateGroups, self.name)
        scores_B = self.logits(states, batch)[: len(told.value)].squeeze(-1).float()
        scores_B = scores_B.sigmoid() if self.bounded else scores_B
        right_B = told.value > 0
        num_groups, sizes = len(told.groups) - 1, torch.from_numpy(np.diff(told.groups))
        group_B = to_device(torch.arange(num_groups).repeat_interleave(sizes), scores_B.device)
        wrong_B = scores_B.masked_fill(right_B, -torch.inf)
        others_B = segment_logsumexp(wrong_B, group_B, num_groups)[group_B]
        cost_B = -F.logsigmoid(scores_B - others_B).masked_fill(~right_B, 0.0)
        best_B = segment_max(wrong_B.detach(), group_B, num_groups)[group_B]
        return LossSum(cost_B.sum(), (right_B & (scores_B > best_B)).sum(), told.num_relevant)
