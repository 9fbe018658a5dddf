"""Heads with their losses: masked and causal language modelling, classes and numbers of rows.

A loss is a sum with a count (`LossSum`); the trainer divides once, over everything.

Shapes: T tokens, B rows, P predicted positions, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.config.pooling import Pooling
from unmask.core.errors import UserError
from unmask.core.records import IGNORE_INDEX, Cloze, NextToken, RowClass, RowValue
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.nets.kernels.dispatch import FusableModule, kernel_supports
from unmask.nets.layers.heads import ClsPooling, LMHead, PoolerClassifier, build_pooling, build_row_head


@dataclass(frozen=True, slots=True)
class LossSum:
    """One objective on one batch: the sum of its losses, how many answers were right, and of how many."""

    total: Tensor
    correct: Tensor
    count: int


def pooler_of(head: nn.Module) -> PoolerClassifier:
    """The pooler and the classes of a head that reads the first token of a row, as BERT's own classes have them."""
    row = getattr(head, "row_head", None)
    if not isinstance(row, PoolerClassifier):
        raise UserError(
            "Only a head that reads the first token of a row can be written as one of BERT's classes; this one reads "
            "all tokens. Tune with --pooling first to export it."
        )
    return row


def cross_entropy_sum(logits_NC: Tensor, targets_N: Tensor, num_ignored: int = 0) -> LossSum:
    """Cross-entropy, summed in float32. `num_ignored`: how many targets are `IGNORED`."""
    total = F.cross_entropy(logits_NC.float(), targets_N, ignore_index=IGNORE_INDEX, reduction="sum")
    return LossSum(total, (logits_NC.argmax(-1) == targets_N).sum(), len(targets_N) - num_ignored)


def lm_loss(
    x_PE: Tensor,
    token: nn.Embedding,
    bias_V: Tensor | None,
    targets_P: Tensor,
    num_ignored: int = 0,
    fused: bool = False,
) -> tuple[LossSum, Tensor]:
    """The LM loss through the token embedding, and logits that are valid until the backward pass."""
    if fused and kernel_supports(x_PE):
        from unmask.nets.kernels import vocab_loss

        added_V = token.weight.new_zeros(token.num_embeddings) if bias_V is None else bias_V
        total, right, logits_PV = vocab_loss.linear_cross_entropy(x_PE, token.weight, added_V, targets_P)
        return LossSum(total, right, len(targets_P) - num_ignored), logits_PV
    logits_PV = F.linear(x_PE, token.weight, bias_V)
    return cross_entropy_sum(logits_PV, targets_P, num_ignored), logits_PV


def lm_loss_from_head(head: LMHead, x_PD: Tensor, targets_P: Tensor, num_ignored: int = 0) -> tuple[LossSum, Tensor]:
    """The same by a head, from states."""
    return lm_loss(head.transform(x_PD), head.token, head.bias, targets_P, num_ignored, head.fused)


@runtime_checkable
class ReadsPositions(Protocol):
    """A head that reads some tokens only."""

    def positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """The positions whose states it reads, tensor by tensor; empty if it reads all tokens."""


class MLMHead(nn.Module):
    """The token at each chosen position; logits are computed at these positions only."""

    def __init__(self, config: NetworkValues, token: nn.Embedding) -> None:
        super().__init__()
        self.lm_head = LMHead(config, token)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The MLM loss."""
        cloze = batch.target(Cloze)
        term, _ = lm_loss_from_head(self.lm_head, states.select(cloze.positions), cloze.answers, cloze.num_padding)
        return term

    def positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """The chosen positions."""
        return (batch.target(Cloze).positions,)


class CLMHead(FusableModule):
    """The next token at every position, through the token embedding itself, without a layer or a bias of its own."""

    def __init__(self, token: nn.Embedding) -> None:
        super().__init__()
        self.token = token

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss at every position whose weight is not 0."""
        target = batch.target(NextToken)
        answers_T = torch.where(target.weights > 0, batch.tokens.ids_T.roll(-1), IGNORE_INDEX)
        ignored = target.num_ignored + target.num_padding
        term, _ = lm_loss(states.last_TD, self.token, None, answers_T, ignored, self.fused)
        return term


class BidirectionalLMHead(FusableModule):
    """Both streams through one output: the token embedding and a bias."""

    def __init__(self, token: nn.Embedding) -> None:
        super().__init__()
        self.token = token
        self.bias = nn.Parameter(torch.zeros(token.num_embeddings))

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The sum of both losses; positions without a next or a previous token are ignored."""
        target, ids_T = batch.target(NextToken), batch.tokens.ids_T
        next_T = torch.where(target.weights > 0, ids_T.roll(-1), IGNORE_INDEX)
        previous_T = torch.where(target.weights.roll(1) > 0, ids_T.roll(1), IGNORE_INDEX)
        x_TD = torch.cat([states.stream(name).last_TD for name in ("forward", "backward")])
        ignored = 2 * (target.num_ignored + target.num_padding)
        return lm_loss(x_TD, self.token, self.bias, torch.cat([next_T, previous_T]), ignored, self.fused)[0]


class PooledHead(nn.Module):
    """A head that reads one vector for each row, and scores it."""

    def __init__(self, config: NetworkValues, num_classes: int, dropout: float, pooling: Pooling) -> None:
        super().__init__()
        self.read = build_pooling(pooling, config)
        self.row_head = build_row_head(pooling, config, num_classes, dropout)

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """One score for each row and class, as it leaves the linear layer."""
        logits_BC: Tensor = self.row_head(self.read(states, batch.row_starts_B))
        return logits_BC

    def positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """The first tokens of rows, if they are read."""
        return (batch.row_starts_B,) if isinstance(self.read, ClsPooling) else ()


class RowClassHead(PooledHead):
    """A fact about each row: one of some classes."""

    def __init__(
        self,
        config: NetworkValues,
        fact: str,
        num_classes: int,
        dropout: float = 0.0,
        pooling: Pooling = Pooling.FIRST,
    ) -> None:
        super().__init__(config, num_classes, dropout, pooling)
        self.fact = fact

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of a classification of rows. Rows after those that the fact is about belong to others."""
        answers = batch.target(RowClass, self.fact)
        return cross_entropy_sum(self.logits(states, batch)[: len(answers.value)], answers.value, answers.num_padding)


class RowRegressionHead(PooledHead):
    """A number about each row: squared error. No number is ever right or wrong."""

    def __init__(
        self, config: NetworkValues, amount: str, dropout: float = 0.0, pooling: Pooling = Pooling.FIRST
    ) -> None:
        super().__init__(config, 1, dropout, pooling)
        self.amount = amount

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of a regression over rows."""
        answers = batch.target(RowValue, self.amount)
        said_B = self.logits(states, batch)[: len(answers.value)].squeeze(-1).float()
        true_B = torch.where(answers.value.isnan(), said_B.detach(), answers.value)
        total = F.mse_loss(said_B, true_B, reduction="sum")
        return LossSum(total, total.new_zeros((), dtype=torch.int64), len(said_B) - answers.num_padding)
