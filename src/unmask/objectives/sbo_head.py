"""The head of the span boundary objective (Joshi et al., 2019).

What arrives: the last states and a cloze with its spans. What leaves: a `Term` over the tokens that have two borders.
What never happens here: a wait for the device. Borders are found on the host, where the spans lie.

Shapes: T tokens, Q tokens that are asked for, D width, E embedding width, K width of the places, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.answers import ClozeAnswers
from unmask.nets.batch import Batch
from unmask.nets.layout import ship_ints
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Term, take
from unmask.objectives.sbo import borders_of

if TYPE_CHECKING:
    from unmask.objectives.sbo import SBO


class SaySpans(nn.Module):
    """The tokens of each span, from the states just outside it and the place of the token in it.

    Both layers are as wide as the trunk. Where token embeddings are narrower, the second one leads down to them.
    """

    def __init__(self, trunk: Trunk, token: nn.Embedding, how: SBO) -> None:
        super().__init__()
        self.most = how.most
        self.place = nn.Embedding(how.most, how.positions)
        self.first = Layer(2 * trunk.width + how.positions, trunk.width, trunk.epsilon)
        self.second = Layer(trunk.width, trunk.token_width, trunk.epsilon)
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of all tokens that have borders."""
        (cloze,) = (answers for answers in batch.answers if isinstance(answers, ClozeAnswers))
        around, x_TD = borders_of(cloze.spans, cloze.rows, self.most), states.last_TD
        # Where a batch is filled up, so is this: with the last answer, which is one of those that are ignored.
        spare = len(cloze.answers_P) - len(around.answer) if cloze.spare else 0
        ends = (around.left, 0), (around.right, 0), (around.place, 0), (around.answer, len(cloze.answers_P) - 1)
        numbers = (np.pad(one, (0, spare), constant_values=last) for one, last in ends)
        left_Q, right_Q, place_Q, answer_Q = (ship_ints(one, x_TD.device) for one in numbers)
        return take(self.logits(x_TD[left_Q], x_TD[right_Q], place_Q), cloze.answers_P[answer_Q], spare)

    def logits(self, left_QD: Tensor, right_QD: Tensor, place_Q: Tensor) -> Tensor:
        """What is said of the tokens at these places between these borders."""
        place_QK = self.place(place_Q).to(left_QD.dtype)
        y_QE = self.second(self.first(torch.cat([left_QD, right_QD, place_QK], dim=-1)))
        return F.linear(y_QE, self.token.weight, self.bias)


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
