"""Head of the span boundary objective (Joshi et al., 2019). Borders are found before a batch is transferred.

Shapes: T tokens, Q predicted tokens, D width, E embedding width, K width of the position embedding, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import Cloze, SpanBorders
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.nets.kernels.dispatch import FusableModule
from unmask.objectives.heads.common import LossSum, lm_loss

if TYPE_CHECKING:
    from unmask.objectives.sbo import SBO


class SBOHead(FusableModule):
    """The tokens of each span, from the states just outside it and the place of the token in it.

    Both layers are as wide as the network. Where token embeddings are narrower, the second one leads down to them.
    """

    def __init__(self, config: NetworkValues, token: nn.Embedding, objective: SBO) -> None:
        super().__init__()
        self.place = nn.Embedding(objective.max_span_tokens, objective.position_width)
        self.first = DenseGeluNorm(2 * config.width + objective.position_width, config.width, config.norm_eps)
        self.second = DenseGeluNorm(config.width, config.token_width, config.norm_eps)
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of all tokens that have borders."""
        cloze, around = batch.target(Cloze), _border_targets(batch)
        y_QE = self.transform(states.select(around.left), states.select(around.right), around.offset)
        answers_Q = cloze.answers[around.target_index]
        term, _ = lm_loss(y_QE, self.token, self.bias, answers_Q, around.num_padding, self.fused)
        return term

    def positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """Both borders of each predicted token."""
        around = _border_targets(batch)
        return around.left, around.right

    def transform(self, left_QD: Tensor, right_QD: Tensor, offset_Q: Tensor) -> Tensor:
        """What the token embedding is multiplied with, at these places between these borders."""
        place_QK = self.place(offset_Q).to(left_QD.dtype)
        y_QE: Tensor = self.second(self.first(torch.cat([left_QD, right_QD, place_QK], dim=-1)))
        return y_QE


def _border_targets(batch: Batch) -> SpanBorders:
    around = batch.target(SpanBorders)
    return around


class DenseGeluNorm(nn.Module):
    """A linear layer, exact GELU, a norm."""

    def __init__(self, in_features: int, out_features: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, out_features)
        self.norm = nn.LayerNorm(out_features, eps)

    def forward(self, x_QD: Tensor) -> Tensor:
        """In turn."""
        y_QD: Tensor = self.norm(F.gelu(self.dense(x_QD)))
        return y_QD
