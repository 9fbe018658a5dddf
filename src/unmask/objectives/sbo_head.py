"""The head of the span boundary objective (Joshi et al., 2019).

What arrives: the last states, a cloze, the borders of its spans. What leaves: a `Term` over the tokens that have two.
What never happens here: a search for borders. They are found on the host, where the spans lie, before a batch is sent.

Shapes: T tokens, Q tokens that are asked for, D width, E embedding width, K width of the places, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.answers import SpanAnswers
from unmask.nets.batch import Batch, cloze_of
from unmask.nets.fused import Lowered
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Term, say

if TYPE_CHECKING:
    from unmask.objectives.sbo import SBO


class SaySpans(Lowered):
    """The tokens of each span, from the states just outside it and the place of the token in it.

    Both layers are as wide as the trunk. Where token embeddings are narrower, the second one leads down to them.
    """

    def __init__(self, trunk: Trunk, token: nn.Embedding, how: SBO) -> None:
        super().__init__()
        self.place = nn.Embedding(how.most, how.positions)
        self.first = Layer(2 * trunk.width + how.positions, trunk.width, trunk.epsilon)
        self.second = Layer(trunk.width, trunk.token_width, trunk.epsilon)
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of all tokens that have borders."""
        cloze, around = cloze_of(batch), _around(batch)
        y_QE = self.before(states.at(around.left_Q), states.at(around.right_Q), around.place_Q)
        answers_Q = cloze.answers_P[around.answer_Q]
        term, _ = say(y_QE, self.token, self.bias, answers_Q, around.spare, self.fused)
        return term

    def places(self, batch: Batch) -> tuple[Tensor, ...]:
        """Both borders of each token that is asked for."""
        around = _around(batch)
        return around.left_Q, around.right_Q

    def before(self, left_QD: Tensor, right_QD: Tensor, place_Q: Tensor) -> Tensor:
        """What the token embedding is multiplied with, at these places between these borders."""
        place_QK = self.place(place_Q).to(left_QD.dtype)
        y_QE: Tensor = self.second(self.first(torch.cat([left_QD, right_QD, place_QK], dim=-1)))
        return y_QE


def _around(batch: Batch) -> SpanAnswers:
    (around,) = (answers for answers in batch.answers if isinstance(answers, SpanAnswers))
    return around


class Layer(nn.Module):
    """A linear layer, exact GELU, a norm."""

    def __init__(self, wide: int, narrow: int, epsilon: float) -> None:
        super().__init__()
        self.dense = nn.Linear(wide, narrow)
        self.norm = nn.LayerNorm(narrow, epsilon)

    def forward(self, x_QD: Tensor) -> Tensor:
        """In turn."""
        y_QD: Tensor = self.norm(F.gelu(self.dense(x_QD)))
        return y_QD
