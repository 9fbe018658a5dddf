"""Heads of fine-tuning tasks on rows: several labels, ranking within a group, the ends of an answer span.

Shapes: T tokens, B rows, L the longest row, C labels, G groups, 2 the two ends.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.config.pooling import Pooling
from unmask.core.records import IGNORE_INDEX, AnswerSpan, CandidateGroups, RowMultiLabel
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import pad, to_device
from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.heads import segment_logsumexp, segment_max
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


class RankingHead(PooledHead):
    """One score for each row, and a softmax over it and the wrong rows of its group.

    A right row with score s costs `-log(exp(s) / (exp(s) + sum of exp(wrong scores)))`: the positive against the
    negatives of the same query (MT-DNN: Liu et al., 2019). Right rows do not compete with each other; with one right
    row in a group, this is the cross-entropy of multiple choice. Relevant rows are counted; one is correct if it
    is scored above all wrong ones. A group with no right row, or with no wrong one, adds nothing to the loss.
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
        target = batch.target(CandidateGroups, self.name)
        scores_B = self.logits(states, batch)[: len(target.value)].squeeze(-1).float()
        scores_B = scores_B.sigmoid() if self.bounded else scores_B
        right_B = target.value > 0
        num_groups, sizes = len(target.groups) - 1, torch.from_numpy(np.diff(target.groups))
        group_B = to_device(torch.arange(num_groups).repeat_interleave(sizes), scores_B.device)
        wrong_B = scores_B.masked_fill(right_B, -torch.inf)
        others_B = segment_logsumexp(wrong_B, group_B, num_groups)[group_B]
        cost_B = -F.logsigmoid(scores_B - others_B).masked_fill(~right_B, 0.0)
        best_B = segment_max(wrong_B.detach(), group_B, num_groups)[group_B]
        return LossSum(cost_B.sum(), (right_B & (scores_B > best_B)).sum(), target.num_relevant)


class SpanHead(nn.Module):
    """Two learned vectors, one for each end; a token's score is its product with them (Devlin et al., 2018, 4.2)."""

    def __init__(self, config: NetworkValues, name: str) -> None:
        super().__init__()
        self.name = name
        self.classify = nn.Linear(config.width, 2)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The mean of the two losses of each row. A row is right if both of its ends are."""
        answers = batch.target(AnswerSpan, self.name)
        rows = len(answers.start)  # the rows after these belong to others
        ends_B2 = torch.stack((answers.start, answers.end), dim=-1)
        ends_B2 = torch.where(ends_B2 == IGNORE_INDEX, ends_B2, ends_B2 - batch.row_starts_B[:rows, None])
        scores_BL2 = self._logits_by_row(states, batch)[:rows]
        total = F.cross_entropy(scores_BL2, ends_B2, ignore_index=IGNORE_INDEX, reduction="sum") / 2
        right_B = (scores_BL2.argmax(1) == ends_B2).all(-1)
        return LossSum(total, right_B.sum(), rows - answers.num_padding)

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """Two scores for each token: as the first of the answer, and as the last."""
        scores_T2: Tensor = self.classify(states.last_TD)
        return scores_T2

    def _logits_by_row(self, states: HiddenStates, batch: Batch) -> Tensor:
        """The scores as a grid of rows; places behind the end of a row cannot be chosen."""
        borders = batch.tokens.sequences
        scores_BL2 = pad(self.logits(states, batch).float(), borders)
        return scores_BL2.masked_fill(~borders.valid_SL()[..., None], float("-inf"))
