"""Heads with their losses: where an objective meets the states of a network.

What arrives: the last states of a flat batch, and the answers. What leaves: a `Term`.
What never happens here: a mean. A loss is a sum with a count; the trainer divides once, over everything.

Shapes: T tokens, B rows, P predicted positions, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.errors import UserError
from unmask.nets.answers import IGNORED, AmountAnswers, FactAnswers
from unmask.nets.batch import Batch, cloze_of
from unmask.nets.fused import served
from unmask.nets.heads import RowHead, TokenHead
from unmask.nets.reading import ReadOut
from unmask.nets.readout import First, read_out, row_head
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Term:
    """One objective on one batch: the sum of its losses, how many answers were right, and of how many."""

    total: Tensor
    right: Tensor
    count: int


def row_head_of(head: nn.Module) -> RowHead:
    """The pooler and the classes of a head that reads the first token of a row, as BERT's own classes have them."""
    row = getattr(head, "row", None)
    if not isinstance(row, RowHead):
        raise UserError(
            "Only a head that reads the first token of a row can be written as one of BERT's classes; this one reads "
            "all tokens. Tune with --read first to export it."
        )
    return row


def take(logits_NC: Tensor, answers_N: Tensor, spare: int = 0) -> Term:
    """Cross-entropy, summed in float32. `spare`: how many answers are `IGNORED`, so that nothing is asked there."""
    total = F.cross_entropy(logits_NC.float(), answers_N, ignore_index=IGNORED, reduction="sum")
    return Term(total, (logits_NC.argmax(-1) == answers_N).sum(), len(answers_N) - spare)


def say(
    x_PE: Tensor, token: nn.Embedding, bias_V: Tensor, answers_P: Tensor, spare: int = 0, fused: bool = False
) -> tuple[Term, Tensor]:
    """Tokens through their own embedding: the loss, and logits that hold until its gradient is taken."""
    if fused and served(x_PE):
        from unmask.nets import fused_tokens

        total, right, logits_PV = fused_tokens.say(x_PE, token.weight, bias_V, answers_P)
        return Term(total, right, len(answers_P) - spare), logits_PV
    logits_PV = F.linear(x_PE, token.weight, bias_V)
    return take(logits_PV, answers_P, spare), logits_PV


def say_with(head: TokenHead, x_PD: Tensor, answers_P: Tensor, spare: int = 0) -> tuple[Term, Tensor]:
    """The same by a head, from states."""
    return say(head.before(x_PD), head.token, head.bias, answers_P, spare, head.fused)


@runtime_checkable
class Picks(Protocol):
    """A head that reads some tokens only."""

    def places(self, batch: Batch) -> tuple[Tensor, ...]:
        """The places that it asks the states for, tensor by tensor; nothing, if it reads all tokens after all."""


class SayTokens(nn.Module):
    """The token at each chosen position; logits are computed at these positions only."""

    def __init__(self, trunk: Trunk, token: nn.Embedding) -> None:
        super().__init__()
        self.tokens = TokenHead(trunk, token)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a cloze."""
        cloze = cloze_of(batch)
        term, _ = say_with(self.tokens, states.at(cloze.positions_P), cloze.answers_P, cloze.spare)
        return term

    def places(self, batch: Batch) -> tuple[Tensor, ...]:
        """The chosen positions."""
        return (cloze_of(batch).positions_P,)


class ReadsRows(nn.Module):
    """A head that reads one vector for each row, and scores it."""

    def __init__(self, trunk: Trunk, classes: int, dropout: float, read: ReadOut) -> None:
        super().__init__()
        self.read = read_out(read, trunk)
        self.row = row_head(read, trunk, classes, dropout)

    def logits(self, states: States, batch: Batch) -> Tensor:
        """One score for each row and class, as it leaves the linear layer."""
        logits_BC: Tensor = self.row(self.read(states, batch.first_B))
        return logits_BC

    def places(self, batch: Batch) -> tuple[Tensor, ...]:
        """Where rows begin, if they are read there."""
        return (batch.first_B,) if isinstance(self.read, First) else ()


class SayFact(ReadsRows):
    """A fact about each row: one of some classes."""

    def __init__(
        self, trunk: Trunk, fact: str, classes: int, dropout: float = 0.0, read: ReadOut = ReadOut.FIRST
    ) -> None:
        super().__init__(trunk, classes, dropout, read)
        self.fact = fact

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a classification of rows. Rows after those that the fact is about belong to others."""
        (answers,) = (some for some in batch.answers if isinstance(some, FactAnswers) and some.name == self.fact)
        return take(self.logits(states, batch)[: len(answers.value_B)], answers.value_B, answers.spare)


class SayAmount(ReadsRows):
    """A number about each row: squared error. No number is ever right or wrong."""

    def __init__(self, trunk: Trunk, amount: str, dropout: float = 0.0, read: ReadOut = ReadOut.FIRST) -> None:
        super().__init__(trunk, 1, dropout, read)
        self.amount = amount

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a regression over rows."""
        (answers,) = (some for some in batch.answers if isinstance(some, AmountAnswers) and some.name == self.amount)
        said_B = self.logits(states, batch)[: len(answers.value_B)].squeeze(-1).float()
        true_B = torch.where(answers.value_B.isnan(), said_B.detach(), answers.value_B)
        total = F.mse_loss(said_B, true_B, reduction="sum")
        return Term(total, total.new_zeros((), dtype=torch.int64), len(said_B) - answers.spare)
