"""Heads with their losses: where an objective meets the states of a network.

What arrives: the last states of a flat batch, and the answers. What leaves: a `Term`.
What never happens here: a mean. A loss is a sum with a count; the trainer divides once, over everything.

Shapes: T tokens, B rows, P predicted positions, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.batch import AmountAnswers, Batch, ClozeAnswers, FactAnswers
from unmask.nets.heads import RowHead, TokenHead
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Term:
    """One objective on one batch: the sum of its losses, how many answers were right, and of how many."""

    total: Tensor
    right: Tensor
    count: int


def take(logits_NC: Tensor, answers_N: Tensor) -> Term:
    """Cross-entropy, summed in float32."""
    total = F.cross_entropy(logits_NC.float(), answers_N, reduction="sum")
    return Term(total, (logits_NC.argmax(-1) == answers_N).sum(), len(answers_N))


class SayTokens(nn.Module):
    """The token at each chosen position; logits are computed at these positions only."""

    def __init__(self, trunk: Trunk, token: nn.Embedding) -> None:
        super().__init__()
        self.tokens = TokenHead(trunk, token)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a cloze."""
        (cloze,) = (answers for answers in batch.answers if isinstance(answers, ClozeAnswers))
        return take(self.tokens(states.last_TD[cloze.positions_P]), cloze.answers_P)


class SayFact(nn.Module):
    """A fact about each row, from its first token."""

    def __init__(self, trunk: Trunk, fact: str, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.fact = fact
        self.row = RowHead(trunk, classes, dropout)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a classification of rows."""
        (answers,) = (some for some in batch.answers if isinstance(some, FactAnswers) and some.name == self.fact)
        return take(self.row(states.last_TD[batch.first_B]), answers.value_B)


class SayAmount(nn.Module):
    """A number about each row, from its first token: squared error. No number is ever right or wrong."""

    def __init__(self, trunk: Trunk, amount: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.amount = amount
        self.row = RowHead(trunk, 1, dropout)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a regression over rows."""
        (answers,) = (some for some in batch.answers if isinstance(some, AmountAnswers) and some.name == self.amount)
        said_B = self.row(states.last_TD[batch.first_B]).squeeze(-1).float()
        total = F.mse_loss(said_B, answers.value_B, reduction="sum")
        return Term(total, total.new_zeros((), dtype=torch.int64), len(said_B))
