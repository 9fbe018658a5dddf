"""Heads that say a class at some tokens: each for itself, or all of a row together.

What arrives: the states of a flat batch, and the classes at some of its tokens. What leaves: a `Term`.
What never happens here: a mean, or a loss at a token that has no class.

Shapes: T tokens, P tagged tokens, C classes, L tagged tokens of the longest row, B rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import Bools, TokenLabels
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.common import LossSum, cross_entropy_sum
from unmask.objectives.heads.crf import Emissions, Transitions, log_partition, path_scores, viterbi

TRANSITION_LR_SCALE = 100.0
"""How much faster than other weights the scores of steps move.

Adam moves every weight by about the learning rate, whatever its gradient. At the rates that suit a trunk, scores of
steps, which should differ by several units, would hardly leave 0 in the few epochs of a fine-tune.
"""


class TokenClassificationHead(nn.Module):
    """A class for each tagged token, from its state alone."""

    def __init__(self, config: NetworkValues, name: str, num_classes: int) -> None:
        super().__init__()
        self.tags, self.dropout = name, config.dropout
        self.classify = nn.Linear(config.width, num_classes)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """Cross-entropy at the tagged tokens."""
        answers = token_label_targets(batch, self.tags)
        return cross_entropy_sum(self._scores(states.last_TD[answers.positions]), answers.value, answers.num_padding)

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """One score for each token and class."""
        return self._scores(states.last_TD)

    def _scores(self, x_PD: Tensor) -> Tensor:
        scores_PC: Tensor = self.classify(F.dropout(x_PD, self.dropout, self.training))
        return scores_PC


class CRFHead(nn.Module):
    """Classes for all tagged tokens of a row at once: a conditional random field over the scores of each token.

    The loss is the negative log-likelihood of the true path. Steps that the scheme of the tags forbids are barred when
    a path is looked for, not when it is learned: files hold slips, and a barred truth would cost infinitely much.
    """

    start_C: Tensor
    step_CC: Tensor
    end_C: Tensor

    def __init__(self, config: NetworkValues, name: str, start: Bools, step: Bools, end: Bools) -> None:
        super().__init__()
        classes = len(start)
        self.tags, self.dropout = name, config.dropout
        self.classify = nn.Linear(config.width, classes)
        # Flat, so that they begin at 0 like biases: multiplied, drawn ones would be noise.
        self.first = nn.Parameter(torch.zeros(classes))
        self.follow = nn.Parameter(torch.zeros(classes * classes))
        self.last = nn.Parameter(torch.zeros(classes))
        for allowed, which in (("start_C", start), ("step_CC", step), ("end_C", end)):
            self.register_buffer(allowed, torch.from_numpy(which), persistent=False)

    @property
    def transitions(self) -> Transitions:
        """What has been learned about steps."""
        classes = len(self.first)
        return Transitions(
            TRANSITION_LR_SCALE * self.first,
            TRANSITION_LR_SCALE * self.follow.view(classes, classes),
            TRANSITION_LR_SCALE * self.last,
        )

    @property
    def allowed_transitions(self) -> Transitions:
        """The same, with forbidden steps barred."""
        return self.transitions.masked(self.start_C, self.step_CC, self.end_C)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The negative log-likelihood of the true paths, summed; what is right is counted tag by tag."""
        answers = token_label_targets(batch, self.tags)
        chains = Emissions.from_flat(self._scores(states.last_TD[answers.positions]), answers.lengths)
        lost_B = log_partition(chains, self.transitions) - path_scores(
            chains, chains.pad(answers.value), self.transitions
        )
        right = (viterbi(chains, self.allowed_transitions) == answers.value).sum()
        return LossSum(lost_B.sum(), right, len(answers.value))

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """One score for each token and class, before any step."""
        return self._scores(states.last_TD)

    def _scores(self, x_PD: Tensor) -> Tensor:
        scores_PC: Tensor = self.classify(F.dropout(x_PD, self.dropout, self.training)).float()
        return scores_PC


def token_label_targets(batch: Batch, name: str) -> TokenLabels:
    """What is true about the tokens of a batch."""
    answers = batch.target(TokenLabels, name)
    return answers
