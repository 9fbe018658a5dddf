"""The head that points at a piece of its row: where the answer begins, and where it ends.

What arrives: the last states of a flat batch, and the true ends of each row. What leaves: a `Term`.
What never happens here: a choice of legal ends. Learning compares all tokens of a row, [CLS] and question included, as
BERT does; which ends go together is for whoever reads an answer from the scores.

Shapes: T tokens, B rows, L the longest row, D width, 2 the two ends.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import IGNORE_INDEX, AnswerSpan
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import pad
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.common import LossSum


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
