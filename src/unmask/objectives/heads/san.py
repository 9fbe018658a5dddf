"""SAN head: multi-step attention between two texts, the votes of all steps averaged.

Liu, Duh and Gao, "Stochastic Answer Networks for Natural Language Inference" (2018); MT-DNN (Liu et al., 2019) uses it
on a shared encoder. The memory begins as a summary of the second text (the hypothesis). Each step attends to the first
text (the premise), votes, and updates the memory.

Shapes: T tokens, B rows, L the longest row, D width, C classes, K steps.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import RowClass
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import pad
from unmask.nets.encoder import HiddenStates, TokenInputs
from unmask.objectives.heads.common import LossSum, cross_entropy_sum


class AnswerModule(nn.Module):
    """Memory and evidence, compared K times.

    The equations of the paper leave open what the first step compares. As in its released code, each step attends with
    the memory that it compares, so that K steps make K votes and K - 1 updates of the memory.
    """

    def __init__(self, width: int, num_classes: int, steps: int, drop: float, dropout: float) -> None:
        super().__init__()
        self.steps, self.drop, self.dropout = steps, drop, dropout
        self.summarise = nn.Linear(width, 1, bias=False)
        self.match = nn.Linear(width, width, bias=False)
        self.remember = nn.GRUCell(width, width) if steps > 1 else nn.Identity()
        self.classify = nn.Linear(4 * width, num_classes)

    def forward(self, states_BLD: Tensor, premise_BL: Tensor, hypothesis_BL: Tensor) -> Tensor:
        """The logarithm of the mean of the votes."""
        votes_KBC = torch.stack(self.votes(states_BLD, premise_BL, hypothesis_BL))
        if not self.training or not self.drop:
            return votes_KBC.logsumexp(0) - math.log(self.steps)
        kept_KB = vote_dropout(self.steps, votes_KBC.shape[1], self.drop, votes_KBC.device)
        return votes_KBC.masked_fill(~kept_KB[..., None], -math.inf).logsumexp(0) - kept_KB.sum(0)[:, None].log()

    def votes(self, states_BLD: Tensor, premise_BL: Tensor, hypothesis_BL: Tensor) -> list[Tensor]:
        """The vote of each step, as log-probabilities."""
        memory_BD = attention_pool(self.summarise(states_BLD).squeeze(-1), states_BLD, hypothesis_BL)
        seen_BD = self._attend(memory_BD, states_BLD, premise_BL)
        votes = [self._vote(memory_BD, seen_BD)]
        for _ in range(self.steps - 1):
            memory_BD = self.remember(seen_BD, memory_BD)
            seen_BD = self._attend(memory_BD, states_BLD, premise_BL)
            votes.append(self._vote(memory_BD, seen_BD))
        return votes

    def _attend(self, memory_BD: Tensor, states_BLD: Tensor, premise_BL: Tensor) -> Tensor:
        """Attention of the memory over the first text."""
        return attention_pool(torch.einsum("bd,bld->bl", self.match(memory_BD), states_BLD), states_BLD, premise_BL)

    def _vote(self, memory_BD: Tensor, seen_BD: Tensor) -> Tensor:
        both = (memory_BD, seen_BD, (memory_BD - seen_BD).abs(), memory_BD * seen_BD)
        compared_BF = F.dropout(torch.cat(both, dim=-1), self.dropout, self.training)
        return F.log_softmax(self.classify(compared_BF), dim=-1)


def attention_pool(scores_BL: Tensor, states_BLD: Tensor, mask_BL: Tensor) -> Tensor:
    """The mean of the states at some places of each row, weighted by scores; zeros where a row has no such place."""
    lowest = torch.finfo(scores_BL.dtype).min
    weights_BL = scores_BL.masked_fill(~mask_BL, lowest).softmax(-1) * mask_BL
    return torch.einsum("bl,bld->bd", weights_BL, states_BLD)


def vote_dropout(steps: int, rows: int, drop: float, device: torch.device) -> Tensor:
    """Which votes of each row count in this training step: each is dropped by chance, but never all of a row.

    The papers divide what is kept by 1 - drop; here it is divided by how many are kept, so that probabilities sum to 1.
    Under a logarithm a divisor is a number added to the loss, and moves no gradient.
    """
    draw_KB = torch.rand(steps, rows, device=device)
    return (draw_KB >= drop) | (draw_KB == draw_KB.amax(0))


def text_masks(tokens: TokenInputs) -> tuple[Tensor, Tensor]:
    """Masks of the words of the first and second text of each row in the grid: `[CLS] A [SEP] B [SEP]`.

    A row ends with its separator, so the same token inside it divides the two texts; no vocabulary and no segments are
    needed. Special tokens belong to neither text.
    """
    borders = tokens.sequences
    ids_BL, real_BL = pad(tokens.ids_T, borders), borders.valid_SL()
    parts_BL = real_BL & (ids_BL == tokens.ids_T[borders.cu_seqlens_S1[1:] - 1][:, None])
    before_BL = parts_BL.cumsum(1)
    words_BL = real_BL & ~parts_BL
    words_BL[:, 0] = False  # [CLS]
    return words_BL & (before_BL == 0), words_BL & (before_BL > 0)


class SANHead(nn.Module):
    """A class for each pair of texts, through the answer module. It computes in float32: its votes are averaged."""

    def __init__(self, config: NetworkValues, fact: str, num_classes: int, steps: int, drop: float) -> None:
        super().__init__()
        self.fact = fact
        self.answer = AnswerModule(config.width, num_classes, steps, drop, config.dropout)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """Cross-entropy on the mean of the votes. Rows after those that the fact is about belong to others."""
        answers = batch.target(RowClass, self.fact)
        return cross_entropy_sum(self.logits(states, batch)[: len(answers.value)], answers.value, answers.num_padding)

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """The logarithm of the probability of each class, for each row."""
        with torch.autocast(states.last_TD.device.type, enabled=False):
            states_BLD = pad(states.last_TD.float(), batch.tokens.sequences)
            logits_BC: Tensor = self.answer(states_BLD, *text_masks(batch.tokens))
        return logits_BC
