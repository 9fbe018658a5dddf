"""Token classification heads: a linear classifier, or a CRF over all tagged tokens of a row.

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
"""Learning-rate factor of CRF transition scores.

Adam moves every weight by about the learning rate, whatever its gradient. At the rates that suit an encoder, transition
scores, which should differ by several units, would hardly leave 0 in the few epochs of fine-tuning.
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

    The loss is the negative log-likelihood of the true path. Transitions that the tagging scheme forbids are excluded
    in decoding, not in training: files hold errors, and a forbidden true path would have infinite loss.
    """

    start_C: Tensor
    step_CC: Tensor
    end_C: Tensor

    def __init__(self, config: NetworkValues, name: str, start: Bools, step: Bools, end: Bools) -> None:
        super().__init__()
        classes = len(start)
        self.tags, self.dropout = name, config.dropout
        self.classify = nn.Linear(config.width, classes)
        # Flat, so that they are initialized to 0 like biases.
        self.first = nn.Parameter(torch.zeros(classes))
        self.follow = nn.Parameter(torch.zeros(classes * classes))
        self.last = nn.Parameter(torch.zeros(classes))
        for allowed, which in (("start_C", start), ("step_CC", step), ("end_C", end)):
            self.register_buffer(allowed, torch.from_numpy(which), persistent=False)

    @property
    def transitions(self) -> Transitions:
        """The learned transition scores."""
        classes = len(self.first)
        return Transitions(
            TRANSITION_LR_SCALE * self.first,
            TRANSITION_LR_SCALE * self.follow.view(classes, classes),
            TRANSITION_LR_SCALE * self.last,
        )

    @property
    def allowed_transitions(self) -> Transitions:
        """The same, with forbidden transitions at minus infinity."""
        return self.transitions.masked(self.start_C, self.step_CC, self.end_C)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The negative log-likelihood of the true paths, summed; accuracy is counted tag by tag."""
        answers = token_label_targets(batch, self.tags)
        chains = Emissions.from_flat(self._scores(states.last_TD[answers.positions]), answers.lengths)
        lost_B = log_partition(chains, self.transitions) - path_scores(
            chains, chains.pad(answers.value), self.transitions
        )
        right = (viterbi(chains, self.allowed_transitions) == answers.value).sum()
        return LossSum(lost_B.sum(), right, len(answers.value))

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """One score for each token and class, without transitions."""
        return self._scores(states.last_TD)

    def _scores(self, x_PD: Tensor) -> Tensor:
        scores_PC: Tensor = self.classify(F.dropout(x_PD, self.dropout, self.training)).float()
        return scores_PC


def token_label_targets(batch: Batch, name: str) -> TokenLabels:
    """The token-label targets of a batch."""
    answers = batch.target(TokenLabels, name)
    return answers
