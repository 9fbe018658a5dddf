"""Heads that say a class at some tokens: each for itself, or all of a row together.

What arrives: the states of a flat batch, and the classes at some of its tokens. What leaves: a `Term`.
What never happens here: a mean, or a loss at a token that has no class.

Shapes: T tokens, P tagged tokens, C classes, L tagged tokens of the longest row, B rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.answers import TagAnswers
from unmask.nets.batch import Batch
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk
from unmask.objectives.chain import Chains, Steps, best_paths, log_partition, path_scores
from unmask.objectives.heads import Term, take
from unmask.records import Bools

HASTE = 100.0
"""How much faster than other weights the scores of steps move.

Adam moves every weight by about the learning rate, whatever its gradient. At the rates that suit a trunk, scores of
steps, which should differ by several units, would hardly leave 0 in the few epochs of a fine-tune.
"""


class TagHead(nn.Module):
    """A class for each tagged token, from its state alone."""

    def __init__(self, trunk: Trunk, name: str, classes: int) -> None:
        super().__init__()
        self.tags, self.dropout = name, trunk.dropout
        self.classify = nn.Linear(trunk.width, classes)

    def forward(self, states: States, batch: Batch) -> Term:
        """Cross-entropy at the tagged tokens."""
        answers = answers_of(batch, self.tags)
        return take(self._scores(states.last_TD[answers.positions_P]), answers.value_P, answers.spare)

    def logits(self, states: States, batch: Batch) -> Tensor:
        """One score for each token and class."""
        return self._scores(states.last_TD)

    def _scores(self, x_PD: Tensor) -> Tensor:
        scores_PC: Tensor = self.classify(F.dropout(x_PD, self.dropout, self.training))
        return scores_PC


class TagsTogether(nn.Module):
    """Classes for all tagged tokens of a row at once: a conditional random field over the scores of each token.

    The loss is the negative log-likelihood of the true path. Steps that the scheme of the tags forbids are barred when
    a path is looked for, not when it is learned: files hold slips, and a barred truth would cost infinitely much.
    """

    start_C: Tensor
    step_CC: Tensor
    end_C: Tensor

    def __init__(self, trunk: Trunk, name: str, start: Bools, step: Bools, end: Bools) -> None:
        super().__init__()
        classes = len(start)
        self.tags, self.dropout = name, trunk.dropout
        self.classify = nn.Linear(trunk.width, classes)
        # Flat, so that they begin at 0 like biases: multiplied, drawn ones would be noise.
        self.first = nn.Parameter(torch.zeros(classes))
        self.follow = nn.Parameter(torch.zeros(classes * classes))
        self.last = nn.Parameter(torch.zeros(classes))
        for allowed, which in (("start_C", start), ("step_CC", step), ("end_C", end)):
            self.register_buffer(allowed, torch.from_numpy(which), persistent=False)

    @property
    def steps(self) -> Steps:
        """What has been learned about steps."""
        classes = len(self.first)
        return Steps(HASTE * self.first, HASTE * self.follow.view(classes, classes), HASTE * self.last)

    @property
    def legal_steps(self) -> Steps:
        """The same, with forbidden steps barred."""
        return self.steps.only(self.start_C, self.step_CC, self.end_C)

    def forward(self, states: States, batch: Batch) -> Term:
        """The negative log-likelihood of the true paths, summed; what is right is counted tag by tag."""
        answers = answers_of(batch, self.tags)
        chains = Chains.of(self._scores(states.last_TD[answers.positions_P]), answers.lengths)
        lost_B = log_partition(chains, self.steps) - path_scores(chains, chains.padded(answers.value_P), self.steps)
        right = (best_paths(chains, self.legal_steps) == answers.value_P).sum()
        return Term(lost_B.sum(), right, len(answers.value_P))

    def logits(self, states: States, batch: Batch) -> Tensor:
        """One score for each token and class, before any step."""
        return self._scores(states.last_TD)

    def _scores(self, x_PD: Tensor) -> Tensor:
        scores_PC: Tensor = self.classify(F.dropout(x_PD, self.dropout, self.training)).float()
        return scores_PC


def answers_of(batch: Batch, name: str) -> TagAnswers:
    """What is true about the tokens of a batch."""
    (answers,) = (some for some in batch.answers if isinstance(some, TagAnswers) and some.name == name)
    return answers
